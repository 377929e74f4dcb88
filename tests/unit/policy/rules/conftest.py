import pytest

from policy.rules.setting import Setting


def setting_of(**changes):
    """r = .1, w = 1.25, o = 5; X′ = 34k of which 18k stay cached; g = 1k, no window, one turn."""
    values = {
        "read_weight": 0.1,
        "write_weight": 1.25,
        "output_weight": 5.0,
        "context_after_tokens": 34_000.0,
        "cached_after_tokens": 18_000.0,
        "summary_output_tokens": 6_000.0,
        "instruction_tokens": 500.0,
        "growth_tokens": 1_000.0,
        "first_growth_tokens": 1_000.0,
    }
    return Setting(**(values | changes))


@pytest.fixture(scope="session")
def make_setting():
    return setting_of
