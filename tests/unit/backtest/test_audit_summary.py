"""Verdicts summed up, against counts and sums done by hand."""

import json

import pytest

from backtest.audit import Audit, AuditedCompaction
from backtest.audit_payload import audit_payload
from backtest.audit_summary import summarize
from backtest.audit_tables import ahead_table, compactions_table, groups_table, headlines
from backtest.compaction_cases import CompactionCase, Remaining
from estimator.report_table import as_text
from policy.cost import CostTerms

AT_MS = 1_768_435_200_000  # 2026-01-15


def one(name, requests, cost, *, final=True, session=None, rework=None, **more):
    """Return a compaction that saves 1,000 base tokens a request, dollars at 5 a million."""
    net = requests * 1_000 - cost
    verdict = "paid" if net > 0 else "lost" if final else "undecided"
    remaining = Remaining(2 * requests, requests, 2 * requests, requests, 0, final)
    given = {
        "session_id": session or name,
        "turn_id": name,
        "at_ms": AT_MS,
        "trigger": "auto",
        "strategy": "summary",
        "role": "main",
        "model": "m",
        "provider": None,
        "between_turns": False,
        "context_before": 100_000,
        "context_after": 90_000,
        "before": None,
        "first": None,
        "pause_before_seconds": None,
        "pause_seconds": None,
        "rework_tokens": rework,
    }
    case = CompactionCase(name, **(given | more), in_turn=remaining, in_session=remaining)
    terms = CostTerms(read=cost, uncached=0, output=0, recache=0, saving=1_000)
    charge = None if rework is None else rework / 10
    return AuditedCompaction(
        case, remaining, terms, "modelled", 1_000.0, net, verdict, charge, 5e-6
    )


def unpriced(name):
    told = one(name, 3, 1_000)
    return AuditedCompaction(told.case, told.remaining, problem="model: no price is known")


def audit_of(*rows):
    return Audit("turn", tuple(rows), 5_000.0, 0)


TEN = audit_of(
    *(one(f"p{number}", 20, 10_000, rework=2_000.0) for number in range(3)),
    *(one(f"l{number}", 5, 10_000, rework=-500.0) for number in range(7)),
)


def test_three_in_ten_paid():
    whole = summarize(TEN).whole
    assert (whole.compactions, whole.paid, whole.lost, whole.undecided) == (10, 3, 7, 0)
    assert whole.share_paid == pytest.approx(0.3)
    # Wilson with z² = 2.7055: (.3 + .13528 ± 1.64485·√(.021 + .0067639)) ÷ 1.27055.
    assert whole.share_interval == pytest.approx((0.1269, 0.5583), abs=1e-4)
    assert whole.net == pytest.approx(3 * 10_000 - 7 * 5_000)
    assert whole.net_dollars == pytest.approx(-0.025)
    assert whole.hit_worth_misses == pytest.approx(2.0)
    assert whole.net_with_rework == pytest.approx(-5_000 - 3 * 200 + 7 * 50)


def test_no_difference_is_shown_where_the_interval_covers_nothing():
    whole = summarize(TEN).whole
    lower, upper = whole.net_interval
    assert lower < 0 < upper
    assert not whole.shows_difference
    net = groups_table(summarize(TEN)).cells[-1][-1]
    assert net.text == "≈0"
    sure = summarize(audit_of(*(one(f"p{number}", 20 + number, 100) for number in range(9)))).whole
    assert sure.shows_difference


def test_the_interval_of_the_net_is_the_binomials():
    """Two kinds of sessions, +10,000 and −5,000: how many of the first kind is binomial."""
    lower, upper = summarize(TEN).whole.net_interval
    # 5% and 95% of Binomial(10, .3) are 1 and 5.
    assert (lower, upper) == (10_000 - 9 * 5_000, 5 * 10_000 - 5 * 5_000)


def test_draws_do_not_depend_on_how_many_are_made_at_once(monkeypatch):
    expected = summarize(TEN).whole.net_interval
    monkeypatch.setattr("backtest.audit_summary._CELLS", 70)
    assert summarize(TEN).whole.net_interval == pytest.approx(expected, rel=1e-12)


def test_sessions_of_many_compactions_tell_less():
    rows = [one(f"p{number}", 20, 10_000, session="same") for number in range(6)]
    rows += [one(f"l{number}", 5, 10_000, session=f"s{number}") for number in range(6)]
    whole = summarize(audit_of(*rows)).whole
    assert whole.sessions == 7
    single, by_session = whole.share_interval, whole.share_interval_by_session
    assert by_session[1] - by_session[0] > single[1] - single[0]


def test_an_undecided_one_counts_as_far_as_it_was_seen():
    # C/s = 10. Lost at 2; cut at 5; lost at 8; two paid. Kaplan-Meier: 4/5 · 2/3.
    rows = [
        one("a", 2, 10_000),
        one("b", 5, 10_000, final=False),
        one("c", 8, 10_000),
        one("d", 30, 10_000),
        one("e", 30, 10_000, final=False),
    ]
    whole = summarize(audit_of(*rows)).whole
    assert (whole.paid, whole.lost, whole.undecided) == (2, 2, 1)
    assert whole.share_paid == pytest.approx(8 / 15)


def test_groups_add_up():
    rows = [
        one("a", 20, 10_000, role="main", trigger="manual", between_turns=True),
        one("b", 5, 10_000, role="triage", model="n", at_ms=AT_MS + 30 * 86_400_000),
        one("c", 20, 10_000, role="triage", strategy="clear", project="shop"),
        unpriced("d"),
    ]
    summary = summarize(audit_of(*rows))
    for name, groups in summary.groups.items():
        if name != "project":
            assert sum(group.compactions for group in groups) == 4, name
            assert sum(group.net for group in groups) == pytest.approx(summary.whole.net), name
    named = {kind: [group.name for group in groups] for kind, groups in summary.groups.items()}
    assert named == {
        "role": ["main", "triage"],
        "trigger": ["auto", "manual"],
        "model": ["m", "n"],
        "month": ["2026-01", "2026-02"],
        "strategy": ["clear", "summary"],
        "project": ["shop"],
    }
    assert summary.whole.unpriced == 1
    assert (summary.idle.compactions, summary.idle.paid, summary.never_resumed) == (1, 1, 0)


def test_calls_ahead_are_binned_where_they_are_known_to_the_end():
    rows = [
        one("a", 0, 10_000),
        one("b", 4, 10_000),
        one("c", 12, 10_000),
        one("d", 15, 10_000, final=False),  # paid, but nobody knows how many followed
        one("e", 45, 10_000),
    ]
    summary = summarize(audit_of(*rows))
    requests = [
        (row.first, row.last, row.compactions, row.paid) for row in summary.ahead["requests"]
    ]
    assert requests == [
        (0, 0, 1, 0),
        (1, 4, 1, 0),
        (5, 9, 0, 0),
        (10, 19, 1, 1),
        (20, 39, 0, 0),
        (40, None, 1, 1),
    ]
    assert summary.ahead["calls"][2].compactions == 1  # four requests made eight calls
    crossing = summary.crossings["requests"]
    assert (crossing.most_lost, crossing.least_paid, crossing.cases) == (4, 12, 4)
    # 10 each; the one without any request after it has no break-even of its own.
    assert summary.break_even == (10, 10, 10)


def test_everything_of_an_empty_audit_is_none():
    summary = summarize(audit_of())
    assert summary.whole.share_paid is None
    assert summary.whole.net_interval is None
    assert summary.break_even is None
    assert audit_payload(audit_of(), summary)["compactions"] == []


def test_what_is_printed_fits_eighty_columns():
    rows = [
        one(f"a{number}", 20 + number, 10_000, model="claude-a-very-long-name-4-5-20251101-preview")
        for number in range(60)
    ]
    rows += [one(f"b{number}", 2, 300_000_000.0, strategy="clear") for number in range(90)]
    audited = audit_of(*rows, unpriced("u"))
    summary = summarize(audited)
    for table in (groups_table(summary), ahead_table(summary), compactions_table(audited)):
        assert max(map(len, as_text(table).splitlines())) <= 80
    assert any("no price is known" in line for line in headlines(audited, summary))


def test_json_holds_ids_and_numbers_and_no_nan():
    audited = audit_of(*TEN.compactions, unpriced("u"))
    told = json.loads(json.dumps(audit_payload(audited, summarize(audited)), allow_nan=False))
    first = told["compactions"][0]
    assert first["remaining"] == {
        "calls": 40,
        "requests": 20,
        "session_calls": 40,
        "session_requests": 20,
        "counted_calls": 40,
        "counted_requests": 20,
        "missed_requests": 0,
        "censored": False,
    }
    assert (first["net"], first["verdict"], first["net_dollars"]) == (10_000, "paid", 0.05)
    assert told["compactions"][-1]["unpriced"] == "model: no price is known"
    assert told["summary"]["all"]["paid"] == 3
    assert len(told["assumptions"]) > 5
