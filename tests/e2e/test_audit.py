"""The audit from raw logs: three compactions done by hand to the token, and every wrong word."""

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from examples.claude_code_tree import write_tree

START = datetime(2026, 1, 15, 12, tzinfo=UTC)
DOCS = (Path(__file__).parents[2] / "docs" / "audit.md").read_text("utf-8")
LOGS = Path(__file__).parents[2].parent / "shared" / "data" / "logs"


class Session:
    """A transcript whose lines are half a minute apart."""

    def __init__(self, folder, name, model):
        self.file = folder / "projects" / "-home-dev-shop" / f"{name}.jsonl"
        self.name, self.model, self.lines, self.requests = name, model, [], 0

    def line(self, kind, **more):
        at = START + timedelta(seconds=30 * len(self.lines))
        told = {
            "type": kind,
            "uuid": f"{self.name}-{len(self.lines)}",
            "sessionId": self.name,
            "cwd": "/home/dev/shop",
            "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        self.lines.append(told | more)

    def user(self, content, **more):
        self.line("user", message={"role": "user", "content": content}, **more)

    def request(self, read, written, *, uncached=0, output=300, last=False):
        """One request; but for a turn's last it calls a tool, and hears from it."""
        self.requests += 1
        tool = f"toolu_{self.name}_{self.requests}"
        done = {"type": "text", "text": "Done."}
        content = done if last else {"type": "tool_use", "id": tool, "name": "Bash", "input": {}}
        message = {
            "id": f"msg_{self.name}_{self.requests}",
            "model": self.model,
            "role": "assistant",
            "content": [content],
            "stop_reason": "end_turn" if last else "tool_use",
            "usage": usage(uncached, read, written, output),
        }
        self.line("assistant", message=message)
        if not last:
            self.user([{"type": "tool_result", "tool_use_id": tool, "content": "ok"}])

    def compact(self, tokens):
        told = {"trigger": "auto", "preTokens": tokens}
        self.line("system", subtype="compact_boundary", parentUuid=None, compactMetadata=told)
        self.user("This session is being continued.", isCompactSummary=True)

    def write(self, file=None):
        file = file or self.file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(line) + "\n" for line in self.lines), "utf-8")


def usage(uncached, read, written, output):
    return {
        "input_tokens": uncached,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
    }


def observed(folder):
    """An ended turn whose summary call is in a file of its own."""
    told = Session(folder, "observed", "claude-opus-4-5")
    told.user("Go on.")
    told.request(90_000, 10_000)
    told.compact(100_500)
    call = Session(folder, "observed", "claude-opus-4-5")
    call.user("Summarise.", isSidechain=True, agentId="acompact-1")
    call.lines += [None, None]  # half a minute before the boundary
    call.request(90_000, 10_500, uncached=3, output=2_000, last=True)
    call.lines = [
        line | {"isSidechain": True, "agentId": "acompact-1"} for line in call.lines if line
    ]
    call.lines[1]["uuid"], call.lines[1]["message"]["id"] = "call-1", "msg_call"
    call.lines[0]["uuid"] = "call-0"
    call.write(told.file.with_suffix("") / "subagents" / "agent-acompact-1.jsonl")
    told.request(20_000, 20_000, uncached=10)
    for number in range(3):
        told.request(40_000 + 500 * number, 500, last=number == 2)
    told.write()


def cut(folder):
    """An interrupted turn of which seven requests were seen, one too few."""
    told = Session(folder, "cut", "claude-opus-4-5")
    told.user("Go on.")
    told.request(90_000, 10_000)
    told.compact(100_000)
    told.request(30_000, 10_000)
    for number in range(6):
        told.request(40_000 + 500 * number, 500)
    told.user("[Request interrupted by user]")
    told.write()


def cliff(folder):
    """An ended turn that a compaction brings below a price cliff."""
    told = Session(folder, "cliff", "claude-sonnet-4-5")
    told.user("Go on.")
    told.request(240_000, 10_000)
    told.compact(250_000)
    told.request(30_000, 20_000)
    told.request(50_000, 500)
    told.request(50_500, 500, last=True)
    told.write()


@pytest.fixture
def by_hand(tmp_path):
    for made in (observed, cut, cliff):
        made(tmp_path / "logs")
    return tmp_path / "logs"


# The sums are in tests/unit/backtest/test_audit.py.
EXPECTED = {
    "observed": ("observed", 55_137, 6_049, 4, -30_941, "lost"),
    "cut": ("modelled", 11_500 + 10_000 + 500 + 10_000, 6_000, 7, 10_000, "paid"),
    "cliff": ("modelled", 55_750 - 3.75 * 3_000, 22_500, 3, 23_000, "paid"),
}


def test_three_compactions_by_hand(compactuary, by_hand):
    done = compactuary("audit", by_hand, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    found = {one["session_id"]: one for one in told["compactions"]}
    assert found.keys() == EXPECTED.keys()
    for name, (source, cost, saving, requests, net, verdict) in EXPECTED.items():
        one = found[name]
        assert one["cost_source"] == source, name
        assert one["cost"] == pytest.approx(cost), name
        assert one["saving_per_call"] == pytest.approx(saving), name
        assert one["remaining"]["requests"] == requests, name
        assert one["net"] == pytest.approx(net), name
        assert one["verdict"] == verdict, name
        assert (one["project"], one["role"]) == ("shop", "main")
    assert found["cut"]["remaining"]["censored"]
    assert found["cliff"]["net_dollars"] == pytest.approx(23_000 * 6e-6)
    assert told["summary"]["all"]["paid"] == 2


def test_a_cut_turn_is_undecided_where_it_had_not_paid_yet(compactuary, tmp_path):
    cut(tmp_path / "logs")
    # Without a summary to learn from, 5,000 output tokens: C = 47,000, and 7 · 6,000 were saved.
    one = json.loads(compactuary("audit", tmp_path / "logs", "--json").out)["compactions"][0]
    assert (one["cost"], one["net"]) == (pytest.approx(47_000), pytest.approx(-5_000))
    assert one["verdict"] == "undecided"


def test_logs_give_what_their_import_gives(compactuary, by_hand, tmp_path):
    straight = json.loads(compactuary("audit", by_hand, "--json").out)
    compactuary("import", by_hand, "--db", tmp_path / "l.db")
    stored = json.loads(compactuary("audit", "--db", tmp_path / "l.db", "--json").out)
    for one in straight["compactions"]:
        one["project"] = None
    straight["summary"]["by_project"] = []
    assert stored == straight


def test_the_horizon_model_and_weights_count(compactuary, by_hand):
    weights = [f"--weight={pair}" for pair in ("cache_read=.05", "cache_write=1.25", "output=5")]
    told = json.loads(compactuary("audit", by_hand, "--json", *weights).out)
    one = next(one for one in told["compactions"] if one["session_id"] == "cliff")
    assert one["saving_per_call"] == pytest.approx(0.05 * 200_000)
    assert one["net_dollars"] is None
    session = json.loads(compactuary("audit", by_hand, "--json", "--horizon", "session").out)
    assert session["horizon"] == "session"
    assert all(one["remaining"]["censored"] for one in session["compactions"])
    named = json.loads(compactuary("audit", by_hand, "--json", "--model", "claude-opus-4-8").out)
    assert {one["verdict"] for one in named["compactions"]} <= {"paid", "lost", "undecided"}


def test_an_unknown_price_is_told_with_its_remedy_and_never_free(compactuary, by_hand):
    for log in by_hand.rglob("*.jsonl"):
        text = log.read_text("utf-8")
        log.write_text(re.sub(r'"model": ?"[^"]+"', '"model": "no-such"', text), "utf-8")
    told = json.loads(compactuary("audit", by_hand, "--json").out)
    assert told["summary"]["all"]["unpriced"] == 3
    for one in told["compactions"]:
        assert (one["cost"], one["net"], one["verdict"]) == (None, None, None)
        assert "'no-such'" in one["unpriced"]
    printed = compactuary("audit", by_hand)
    assert printed.code == 0
    assert "COMPACTUARY_PRICES" in printed.out
    # Named for all of them, it is a wrong word.
    named = compactuary("audit", by_hand, "--model", "no-such")
    assert (named.code, named.out) == (2, "")
    assert "'no-such'" in named.err


def test_the_report_fits_eighty_columns(compactuary, by_hand):
    done = compactuary("audit", by_hand, "--each", COLUMNS="80")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    assert done.out.startswith("3 compactions in 3 sessions, judged to the end of the turn: 2 paid")
    assert "Assumed:" in done.out


def test_csv_has_one_row_a_compaction(compactuary, by_hand):
    rows = list(csv.DictReader(io.StringIO(compactuary("audit", by_hand, "--format", "csv").out)))
    assert {row["session_id"]: row["verdict"] for row in rows} == {
        "observed": "lost",
        "cut": "paid",
        "cliff": "paid",
    }
    lines = compactuary("audit", by_hand, "--format", "jsonl").out.splitlines()
    assert len([json.loads(line) for line in lines]) == 3


@pytest.mark.parametrize("form", ["markdown", "html", "latex"])
def test_other_forms_tell_what_was_assumed(compactuary, by_hand, form):
    assert "Assumed:" in compactuary("audit", by_hand, "--format", form).out


def test_the_usual_folders_are_read_while_there_is_no_ledger(compactuary, tmp_path):
    observed(tmp_path / ".claude")
    done = compactuary("audit", "--json")
    assert "no ledger yet" in done.err
    assert len(json.loads(done.out)["compactions"]) == 1


def test_a_generated_tree_is_told_as_it_was_made(compactuary, tmp_path):
    manifest = write_tree(tmp_path / "tree", sessions=6)
    # At weights of 1 for every write, a call costs .1·read + uncached + written + 5·output.
    weights = [f"--weight={pair}" for pair in ("cache_read=.1", "cache_write=1", "output=5")]
    told = json.loads(compactuary("audit", tmp_path / "tree", "--json", *weights).out)
    found = {(one["session_id"], one["context_before"]): one for one in told["compactions"]}
    assert len(found) == len(manifest.compactions) > 2
    for made in manifest.compactions:
        one = found[made.session_id, made.pre_tokens]
        assert one["trigger"] == made.trigger
        assert one["between_turns"] == (made.turn is None)
        assert (one["context_after"] or 0) == made.context_after
        assert one["cost_source"] == "observed"
        terms, call = one["terms"], made.summary
        assert terms["read"] == pytest.approx(0.1 * call.cache_read)
        assert terms["uncached"] == pytest.approx(call.uncached + call.cache_write)
        assert terms["output"] == pytest.approx(5 * call.output)
        if made.turn is not None:
            own = [turn for turn in manifest.turns if turn.session_id == made.session_id]
            turn = [turn for turn in own if turn.agent_id is None][made.turn]
            assert one["remaining"]["calls"] == turn.tool_calls - made.tool_calls_before
            assert one["remaining"]["censored"] in (turn.status != "ended", False)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["nothing-here"], 2, "nothing-here: no such file or folder"),
        ([".", "--db", "l.db"], 2, "PATH, --db"),
        (["--horizon", "week"], 2, "--horizon"),
        (["--weight", "cache_read"], 2, "--weight"),
        (["--weight", "cache_read=.1"], 2, "weights."),
        (["--weight", "cache_read=.1", "--model", "m"], 2, "--model, --weight"),
        (["--format", "xml"], 2, "'xml'"),
    ],
)
def test_wrong_words_are_told_in_one_line(compactuary, words, code, told):
    done = compactuary("audit", *words)
    assert done.code == code
    assert done.out == ""
    assert told in done.err
    assert done.err.count("\n") == 1


def test_a_ledger_without_a_compaction_says_so(compactuary):
    done = compactuary("audit")
    assert (done.code, done.out) == (0, "")
    assert "compactuary audit PATH" in done.err


@pytest.mark.skipif(not LOGS.is_dir(), reason="the shared data folder is not beside this checkout")
def test_the_example_in_the_docs_is_what_is_printed(compactuary):
    blocks = re.findall(r"^```\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)
    printed = compactuary("audit", LOGS, COLUMNS="80")
    assert printed.code == 0
    assert len(blocks) >= 2
    for block in blocks:
        assert block in printed.out
