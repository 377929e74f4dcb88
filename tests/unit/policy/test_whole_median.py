"""The median of whole turns in a stored table."""

from dataclasses import replace

from policy.remaining_calls import remaining_calls
from policy.role_table import RoleTable


def test_what_was_seen_stands_before_the_open_tails(make_table):
    table = replace(make_table([6.0]), observed_median=6)
    assert table.whole_median == 6
    told = remaining_calls(table, ages=[0])
    assert (told["p50"], told["p50_extrapolated"]) == (6, False)
    # What decides goes by the tail: (5/6)⁴ = .48.
    assert table.median(0) == 4


def test_a_table_that_does_not_tell_it_has_its_open_tails(make_table):
    told = remaining_calls(make_table([6.0]), ages=[0])
    assert (told["p50"], told["p50_extrapolated"]) == (4, True)


def test_a_table_stored_before_it_was_told_is_read(make_table):
    table = make_table([6.0])
    payload = table.to_payload()
    del payload["observed_median"]
    assert RoleTable.from_payload(payload) == table
    seen = replace(table, observed_median=6)
    assert RoleTable.from_payload(seen.to_payload()) == seen
