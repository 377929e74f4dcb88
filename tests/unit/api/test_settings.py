import pytest

from api.settings import Settings
from compactuary.errors import InputError


def test_without_an_environment_the_defaults_hold():
    assert Settings.from_environment({}) == Settings(db=None, refresh_seconds=0.5)


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
