"""The backtest from raw logs: two rules billed by hand to the token, and every wrong word."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from tests.e2e.session_by_hand import write_session

DOCS = (Path(__file__).parents[2] / "docs" / "backtest.md").read_text("utf-8")
LOGS = Path(__file__).parents[2].parent / "shared" / "data" / "logs"
WEIGHTS = [f"--weight={pair}" for pair in ("cache_read=.1", "cache_write=1.25", "output=5")]
TWO = "never,occupancy 60k"


@pytest.fixture
def by_hand(tmp_path):
    """Ten sessions to learn from, and two to bill."""
    for day in range(10):
        write_session(tmp_path / "logs", f"s{day:02}", [20_000, 21_000, 22_000], day=day)
    write_session(tmp_path / "logs", "s10", [20_000, 50_000, 70_000, 75_000, 80_000], day=10)
    write_session(tmp_path / "logs", "s11", [20_000, *[70_000] * 16], day=11)
    return tmp_path / "logs"


# P is 18,000 and X′ 34,000 as nobody compacted; a summary writes 5,000 tokens, asked in 500.
# Never, s10: 1.25·20k, then .1·20k + 1.25·30k, .1·50k + 1.25·20k, .1·70k + 1.25·5k and
# .1·75k + 1.25·5k.
NEVER_10 = 25_000 + 39_500 + 30_000 + 13_250 + 13_750
# From 60k on, s10: before the fourth request .1·70k + 500 + 5·5k for the summary, then .1·18k +
# 1.25·(16k + 5k), and the fifth reads 39k. It costs 47,300 more and saves 3,600 once.
FIXED_10 = 25_000 + 39_500 + 30_000 + (32_500 + 28_050) + (3_900 + 6_250)
# Never, s11: 25k, .1·20k + 1.25·50k, and fifteen times .1·70k.
NEVER_11 = 25_000 + 64_500 + 15 * 7_000
# From 60k on, s11: the third is 32,500 + .1·18k + 1.25·16k, fourteen more read 34k. It costs
# 47,300 more and saves 14 · 3,600 = 50,400: it pays.
FIXED_11 = 25_000 + 64_500 + (32_500 + 21_800) + 14 * 3_400


def test_two_rules_by_hand(compactuary, by_hand):
    done = compactuary("backtest", by_hand, "--rules", TWO, "--json", *WEIGHTS)
    assert done.code == 0, done.err
    told = json.loads(done.out)
    rows = {row["rule"]: row for row in told["rules"]}
    assert set(rows) == {"never", "occupancy 60k", "best threshold", "clairvoyant"}
    never, fixed = NEVER_10 + NEVER_11, FIXED_10 + FIXED_11
    assert (never, fixed) == (316_000, 356_600)
    assert told["baseline"]["cost"] == pytest.approx(never)
    assert rows["never"]["cost"] == pytest.approx(never)
    assert rows["never"]["interval"] == [0, 0]
    assert rows["occupancy 60k"]["cost"] == pytest.approx(fixed)
    assert rows["occupancy 60k"]["relative_to_baseline"] == pytest.approx(fixed / never - 1)
    assert rows["occupancy 60k"]["compactions"] == 2
    assert rows["occupancy 60k"]["share_paid"] == 0.5
    # Who knows all compacts in s11 alone.
    best = NEVER_10 + FIXED_11
    assert rows["clairvoyant"]["cost"] == pytest.approx(best)
    assert rows["clairvoyant"]["share_paid"] == 1
    share = (never - fixed) / (never - best)
    assert rows["occupancy 60k"]["share_of_clairvoyant"] == pytest.approx(share)
    assert rows["occupancy 60k"]["regret"] == pytest.approx((fixed - best) / never)
    # One of two sessions lost 36% and one won 2%: draws of two sessions cover 0.
    low, high = rows["occupancy 60k"]["interval"]
    assert low == pytest.approx(FIXED_11 / NEVER_11 - 1)
    assert high == pytest.approx(FIXED_10 / NEVER_10 - 1)
    assert not rows["occupancy 60k"]["difference_shown"]
    assert (told["requests"], told["sessions"]) == (52, 12)
    assert (told["scored_requests"], told["scored_sessions"]) == (22, 2)
    assert rows["never"]["dollars"] is None


def test_dollars_are_those_of_the_model(compactuary, by_hand):
    done = compactuary("backtest", by_hand, "--rules", TWO, "--json")
    told = json.loads(done.out)
    # claude-opus-4-5 has these weights, and 5 dollars a million of input.
    assert told["baseline"]["cost"] == pytest.approx(316_000)
    assert told["baseline"]["dollars"] == pytest.approx(316_000 * 5e-6)
    assert "claude-opus-4-5" in told["assumptions"][0]


def test_a_ledger_gives_what_its_logs_give(compactuary, by_hand, tmp_path):
    straight = json.loads(compactuary("backtest", by_hand, "--rules", TWO, "--json").out)
    compactuary("import", by_hand, "--db", tmp_path / "l.db")
    words = ("backtest", "--db", tmp_path / "l.db", "--rules", TWO, "--json")
    assert json.loads(compactuary(*words).out) == straight


def test_turns_alone_and_random_halves(compactuary, by_hand):
    words = ("backtest", by_hand, "--rules", TWO, "--json", *WEIGHTS)
    # Every session is one turn here.
    turns = json.loads(compactuary(*words, "--horizon", "turn").out)
    assert turns["baseline"]["cost"] == pytest.approx(316_000)
    halves = json.loads(compactuary(*words, "--split", "random", "--seed", "3").out)
    assert halves["scored_sessions"] == 12
    learned_from = 25_000 + 2 * 1_250 + 2_000 + 2_100
    assert halves["baseline"]["cost"] == pytest.approx(316_000 + 10 * learned_from)
    assert any("seed 3" in line for line in halves["assumptions"])


def test_by_role_says_where_nothing_is_to_be_decided(compactuary, by_hand):
    for day in range(10, 17):
        agents = [[15_000, 16_000]]
        write_session(by_hand, f"t{day}", [20_000, 21_000], day=day + 2, sub_agents=agents)
    done = compactuary("backtest", by_hand, "--by-role", "--rules", "occupancy 60k", "--json")
    assert done.code == 0, done.err
    rows = {row["role"]: row for row in json.loads(done.out)["by_role"]}
    assert set(rows) == {"main", "unknown-subagent"}
    agent = rows["unknown-subagent"]
    assert (agent["turns"], agent["sessions"], agent["requests"]) == (7, 7, 14)
    assert agent["verdict"] == "nothing to decide"
    assert (agent["saving"], agent["m_matters"]) == (0, False)
    assert rows["main"]["saving"] == pytest.approx(NEVER_10 + NEVER_11 - FIXED_10 - FIXED_11)
    assert rows["main"]["verdict"] == "no difference shown"


def test_the_tables_fit_eighty_columns(compactuary, by_hand):
    done = compactuary("backtest", by_hand, "--by-role", COLUMNS="80")
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    assert "Assumed:" in done.out
    assert "clairvoyant" in done.out


def test_csv_has_one_row_a_rule(compactuary, by_hand):
    words = ("backtest", by_hand, "--rules", TWO, *WEIGHTS)
    rows = list(csv.DictReader(io.StringIO(compactuary(*words, "--format", "csv").out)))
    costs = {row["rule"]: float(row["cost"]) for row in rows}
    assert costs["never"] == costs["trigger"] == 316_000
    assert costs["occupancy 60k"] == 356_600
    lines = compactuary(*words, "--format", "jsonl").out.splitlines()
    assert len([json.loads(line) for line in lines]) == 5
    assert "Assumed:" in compactuary(*words, "--format", "markdown").out


def test_sensitivity_leaves_each_project_out(compactuary, by_hand):
    for day in range(12):
        contexts = [20_000, 30_000, 90_000]
        write_session(by_hand, f"u{day:02}", contexts, day=day + 20, cwd="/home/dev/api")
    done = compactuary("backtest", by_hand, "--sensitivity", "--rules", TWO, "--json", *WEIGHTS)
    runs = {(run["kind"], run["name"]): run for run in json.loads(done.out)["sensitivity"]}
    assert {key for key in runs if key[0] != "sizes"} == {
        (kind, name) for kind in ("project", "without") for name in ("api", "shop")
    }
    without = {row["rule"]: row["cost"] for row in runs["without", "api"]["rules"]}
    assert without["occupancy 60k"] == pytest.approx(356_600)
    sized = {row["rule"]: row["cost"] for row in runs["sizes", "X′ = P + 34k, L = 0"]["rules"]}
    assert sized["never"] == sized["trigger"] > 316_000
    told = compactuary("backtest", by_hand, "--sensitivity", COLUMNS="80")
    assert told.code == 0
    assert max(map(len, told.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["nothing-here"], 2, "nothing-here: no such file or folder"),
        ([".", "--db", "l.db"], 2, "PATH, --db"),
        (["--horizon", "week"], 2, "--horizon"),
        (["--split", "odd"], 2, "--split"),
        (["--seed", "-1"], 2, "--seed"),
        (["--draws", "0"], 2, "--draws"),
        (["--ttl", "2m"], 2, "--ttl"),
        (["--limit", "0"], 2, "--limit"),
        (["--rules", "magic"], 2, "--rules: no such rule (got 'magic')"),
        (["--rules", ""], 2, "--rules"),
        (["logs", "--ttl", "12h"], 2, "--ttl"),
        (["logs", "--model", "no-such"], 2, "no-such"),
        (["--weight", "cache_read"], 2, "--weight"),
        (["logs", *WEIGHTS, "--model", "m"], 2, "--model, --weight"),
        (["--format", "xml"], 2, "'xml'"),
        (["--scheduler", "nonsense"], 2, "--scheduler"),
    ],
)
def test_wrong_words_are_told_in_one_line(compactuary, by_hand, words, code, told):
    done = compactuary("backtest", *words)
    assert done.code == code, done.err
    assert done.out == ""
    assert told in done.err
    assert done.err.count("\n") == 1


def test_too_few_sessions_say_what_to_do(compactuary, tmp_path):
    write_session(tmp_path / "logs", "s0", [20_000, 21_000], day=0)
    done = compactuary("backtest", tmp_path / "logs")
    assert done.code == 2
    assert "--split random" in done.err
    halves = compactuary("backtest", tmp_path / "logs", "--split", "random")
    assert halves.code == 2
    assert halves.err.count("\n") == 1


def test_a_ledger_without_a_request_says_so(compactuary):
    done = compactuary("backtest")
    assert (done.code, done.out) == (2, "")
    assert "no turn has a request with its context" in done.err
    assert "sequences" not in done.err


@pytest.mark.skipif(not LOGS.is_dir(), reason="the shared data folder is not beside this checkout")
def test_the_example_in_the_docs_is_what_is_printed(compactuary):
    blocks = re.findall(r"^```\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)
    printed = compactuary("backtest", LOGS, "--by-role", COLUMNS="80")
    assert printed.code == 0
    assert len(blocks) >= 2
    for block in blocks:
        assert block in printed.out
