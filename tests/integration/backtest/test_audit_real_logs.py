"""Compactions of real logs, against a table of them that another reader made."""

import csv
from datetime import datetime
from pathlib import Path
from statistics import quantiles

import pytest

from backtest.audit import Pricing, audit
from backtest.audit_summary import summarize
from backtest.compaction_cases import compaction_cases
from compactuary.log_ledger import log_ledger
from ledger.database import open_engine, reading
from policy.prices import GenaiPriceBook
from policy.weights import weights_from

DOCS = (Path(__file__).parents[3] / "docs" / "audit.md").read_text("utf-8")
FINDINGS = (Path(__file__).parents[3] / "docs" / "findings.md").read_text("utf-8")
DATA = Path(__file__).parents[3].parent / "shared" / "data"
pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the shared data folder is not beside this checkout"
)

#: What the table says of them is the client's estimate of messages alone: the request before a
#: clear has twice the context.
CLEARS = 9
#: A summary made right behind the clear: the request that the table gives to both follows on the
#: summary.
REPLACED = {"0725b35d-36fd-482c-b4bf-ef15aa7c37ab", "987bc31a-8025-42a3-a7c8-f4d922264024"}
#: Made in the turn that a fork goes on with. The table has it between turns.
OF_A_FORK = "8cb14583-9785-4b23-a5c8-9cf31dd71fc0"


@pytest.fixture(scope="module")
def cases():
    with log_ledger(DATA / "logs", skip_corrupt=True) as url:
        engine = open_engine(url)
        with reading(engine) as connection:
            found = compaction_cases(connection, 1_100.0)
        engine.dispose()
    return {(one.session_id, one.at_ms): one for one in found}


@pytest.fixture(scope="module")
def rows():
    with (DATA / "compactions.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def pairs(rows, cases):
    for row in rows:
        at_ms = round(datetime.fromisoformat(row["ts"]).timestamp() * 1_000)
        yield row, cases[row["session"], at_ms]


def whole(text):
    return int(float(text))


def test_every_compaction_is_found_and_no_other(rows, cases):
    found = [one.compaction_id for _, one in pairs(rows, cases)]
    assert len(set(found)) == len(found) == len(cases) == 113


def test_calls_and_requests_after_are_those_of_the_table(rows, cases):
    compared = 0
    for row, one in pairs(rows, cases):
        if row["in_turn"] == "True":
            told = (whole(row["tool_calls_after"]), whole(row["llm_calls_after"]))
            assert (one.in_turn.calls, one.in_turn.requests) == told, one.compaction_id
            compared += 1
    assert compared == 97


def test_contexts_are_those_of_the_table_but_where_it_repeats_an_estimate(rows, cases):
    clears = 0
    for row, one in pairs(rows, cases):
        if one.strategy == "clear":
            clears += 1
            assert one.context_before == whole(row["ctx_last_call_before"])
        else:
            assert one.context_before == whole(row["pre_tokens"])
        if row["in_turn"] == "True" and one.compaction_id not in REPLACED:
            assert one.context_after == whole(row["ctx_first_call_after"])
            assert one.first.cache_read == whole(row["cache_read_first_call_after"])
    assert clears == CLEARS


def test_what_a_summary_replaced_at_once_has_no_request_of_its_own(rows, cases):
    replaced = [one for _, one in pairs(rows, cases) if one.compaction_id in REPLACED]
    assert len(replaced) == 2
    for one in replaced:
        assert one.in_turn.counted_requests == one.in_session.counted_requests == 0
        assert one.in_turn.final


def test_the_compaction_of_a_fork_is_in_its_turn(cases):
    one = next(one for one in cases.values() if one.compaction_id == OF_A_FORK)
    assert not one.between_turns
    assert one.turn_id.endswith(f"@{one.session_id}")
    # The log's first request behind the boundary: 2 uncached, 61,594 written.
    assert one.context_after == 61_596
    assert (one.in_turn.requests, one.in_turn.final) == (9, True)


@pytest.mark.parametrize("horizon", ["turn", "session"])
@pytest.mark.parametrize("read", [".10", ".05", ".025"])
def test_the_figures_by_read_price_in_the_docs_hold(cases, read, horizon):
    weights = weights_from({"cache_read": float(read), "cache_write": 1.25, "output": 5})
    found = summarize(
        audit(list(cases.values()), Pricing(GenaiPriceBook(), weights=weights), horizon)
    )
    whole, crossing = found.whole, found.crossings["requests"]
    low, high = whole.share_interval_by_session
    net_low, net_high = whole.net_interval
    row = (
        f"| {read}, {horizon} | {whole.paid} / {whole.lost} / {whole.undecided} "
        f"| {whole.share_paid:.0%} [{low:.0%}, {high:.0%}] "
        f"| {crossing.calls:.1f} [{crossing.lower:.1f}, {crossing.upper:.1f}] "
        f"| {whole.net / 1e6:+.1f}M [{net_low / 1e6:.1f}, {net_high / 1e6:.1f}] |"
    )
    assert row in DOCS


def test_where_they_were_made_and_what_followed_is_what_the_findings_say(rows, cases):
    own = [one for one in cases.values() if not one.model.startswith("gpt")]
    ahead = [one.in_session.requests for one in own]
    # The contexts are the table's: of a clear, those of the request before it.
    size = {"microcompact": "ctx_last_call_before", "compact": "pre_tokens"}
    contexts = [float(row[size[row["kind"]]]) for row in rows if row["harness"] == "claude-code"]
    assert len(contexts) == len(ahead) == 110
    lower, middle, upper = (f"{one / 1e3:.0f}k" for one in quantiles(contexts, n=4))
    said = f"at {middle} tokens in the median, the middle half between {lower} and {upper}. "
    said += f"Between {min(ahead)} and {max(ahead)} requests followed in the session."
    assert said in FINDINGS


@pytest.mark.parametrize("horizon", ["turn", "session"])
@pytest.mark.parametrize("read", [".10", ".05", ".025"])
@pytest.mark.parametrize("agent", ["Claude Code", "Codex"])
def test_the_findings_by_agent_hold(cases, agent, read, horizon):
    # In these logs Codex alone ran models of this name.
    own = [one for one in cases.values() if one.model.startswith("gpt") == (agent == "Codex")]
    assert len(own) == {"Claude Code": 110, "Codex": 3}[agent]
    weights = weights_from({"cache_read": float(read), "cache_write": 1.25, "output": 5})
    found = summarize(audit(own, Pricing(GenaiPriceBook(), weights=weights), horizon))
    whole, crossing = found.whole, found.crossings["requests"]
    low, high = whole.share_interval_by_session
    net_low, net_high = whole.net_interval
    crosses = (
        "all paid"
        if crossing.calls is None
        else f"{crossing.calls:.1f} [{crossing.lower:.1f}, {crossing.upper:.1f}]"
    )
    row = (
        f"| {agent} | {read}, {horizon} | {whole.paid} / {whole.lost} / {whole.undecided} "
        f"| {whole.share_paid:.0%} [{low:.0%}, {high:.0%}] | {found.break_even[1]:.1f} "
        f"| {crosses} | {whole.net / 1e6:+.1f}M [{net_low / 1e6:.1f}, {net_high / 1e6:.1f}] |"
    )
    assert row in FINDINGS
