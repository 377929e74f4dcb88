import pytest

from api.modes import Modes, modes_of
from compactuary.errors import InputError


@pytest.mark.parametrize(
    ("given", "modes"),
    [
        (None, Modes()),
        ("", Modes()),
        ("shadow", Modes("shadow")),
        (
            "shadow, main=enforce ,Explore=off",
            Modes("shadow", {"main": "enforce", "Explore": "off"}),
        ),
        ("a=b=off", Modes("enforce", {"a=b": "off"})),
    ],
)
def test_modes_are_read(given, modes):
    assert modes_of(given) == modes


def test_a_role_that_is_not_named_has_the_default():
    modes = modes_of("shadow,main=enforce")
    assert (modes.of("main"), modes.of("Explore")) == ("enforce", "shadow")


@pytest.mark.parametrize("given", ["on", "main=", "main=on", "=off", "shadow,off"])
def test_wrong_modes_are_named(given):
    with pytest.raises(InputError) as caught:
        modes_of(given)
    assert caught.value.where == "COMPACTUARY_MODES"
    assert "shadow" in caught.value.remedy
