"""Long names keep the ends that tell them apart."""

import pytest

from backtest.short_name import short_name


@pytest.mark.parametrize(
    ("name", "widest", "shown"),
    [
        ("main", 4, "main"),
        ("review", 6, "review"),
        ("superpowers:code-reviewer", 24, "superpowe…:code-reviewer"),
        ("abcdefghij", 9, "abc…fghij"),
        ("abcdef", 3, "…ef"),
    ],
)
def test_the_middle_is_cut(name, widest, shown):
    assert short_name(name, widest) == shown
    assert len(shown) <= widest
