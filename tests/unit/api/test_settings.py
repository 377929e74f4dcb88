import pytest

from api.settings import Settings
from compactuary.errors import InputError


def test_without_an_environment_the_defaults_hold():
    plain = Settings(None, 0.5, log=True, log_queue=10_000, log_durability="drop")
    assert Settings.from_environment({}) == Settings() == plain


def test_the_environment_sets_both():
    given = {"COMPACTUARY_DB": "postgresql://u@h/n", "COMPACTUARY_REFRESH_SECONDS": "2"}
    assert Settings.from_environment(given) == Settings("postgresql://u@h/n", 2.0)


@pytest.mark.parametrize("given", ["0", "-1", "soon", "nan", "inf", "3601"])
def test_seconds_that_are_none_are_refused_by_name(given):
    with pytest.raises(InputError) as refused:
        Settings.from_environment({"COMPACTUARY_REFRESH_SECONDS": given})
    assert refused.value.where == "COMPACTUARY_REFRESH_SECONDS"
    assert refused.value.value == given
    assert refused.value.remedy


def test_the_environment_sets_the_log():
    given = {
        "COMPACTUARY_LOG": "off",
        "COMPACTUARY_LOG_QUEUE": "500",
        "COMPACTUARY_LOG_DURABILITY": "block",
    }
    expected = Settings(log=False, log_queue=500, log_durability="block")
    assert Settings.from_environment(given) == expected


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("COMPACTUARY_LOG", "no"),
        ("COMPACTUARY_LOG_DURABILITY", "wait"),
        *(("COMPACTUARY_LOG_QUEUE", given) for given in ("0", "-1", "many", "1e4", "9" * 5000)),
    ],
)
def test_a_wrong_setting_of_the_log_is_refused_by_name(name, given):
    with pytest.raises(InputError) as refused:
        Settings.from_environment({name: given})
    assert (refused.value.where, refused.value.value) == (name, given)
    assert refused.value.remedy
