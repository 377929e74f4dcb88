"""``compactuary learn``: what it prints, and what it refuses."""

import json

import pytest

from cli.app import run
from ledger.database import writing
from ledger.events import CompactionMade, RequestMade, TurnReached, TurnStarted
from ledger.recording import record
from ledger.token_classes import Usage

MINUTE = 60_000


@pytest.fixture
def learn(sqlite_ledger, capsys):
    """Return what runs the command, and gives its exit code, output and errors."""

    def call(*words):
        code = run(["learn", "--db", str(sqlite_ledger.url), *words])
        return code, *capsys.readouterr()

    return call


@pytest.fixture
def compacted(sqlite_ledger):
    """Record a session of three turns, one of them compacted."""
    events = []
    for number in range(3):
        turn_id, at_ms = f"t{number}", number * 30 * MINUTE
        events.append(TurnStarted(turn_id, "s", "s", "test", "main", at_ms, model="m"))
        for position, context in enumerate((42_000 + 500 * number, 43_000 + 500 * number)):
            usage = Usage(uncached=10, cache_read=20_000, cache_write_5m=context - 20_010)
            at = at_ms + position * MINUTE
            events.append(
                RequestMade(f"{turn_id}:{position}", "s", turn_id, position, at, "m", usage)
            )
        events.append(TurnReached(turn_id, "s", "ended", None, at_ms + MINUTE))
    events.append(CompactionMade("c", "s", "t2", 61 * MINUTE, None, "summary", 150_000, None, 0, 1))
    with writing(sqlite_ledger) as connection:
        record(connection, events)


def test_an_empty_ledger_says_what_to_do(learn):
    code, out, err = learn()
    assert (code, out) == (0, "")
    assert "compactuary import" in err
    assert json.loads(learn("--json")[1]) == {"version": 0, "roles": []}


def test_an_unknown_role_is_answered_with_what_stands_in(learn):
    code, out, _ = learn("--role", "nobody", "--json")
    assert code == 0
    [row] = json.loads(out)["roles"]
    assert (row["role"], row["source"]) == ("nobody", "assumed")


@pytest.mark.usefixtures("compacted")
def test_the_table_fits_80_columns(learn):
    code, out, err = learn()
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "main"
    assert max(map(len, lines)) <= 80
    growth = next(line for line in lines if "growth per request" in line)
    # Two of the three steps are growth by 1,000; the third lies over the compaction. All roles,
    # the kind and the role believe them by 2/12 each, over the assumed 1,100.
    assert growth.split() == [
        *("g", "growth", "per", "request"),
        *("1,058", "1,000", "(1,000–1,000)", "2", "role", "17%"),
    ]
    assert any("pauses longer than" in line for line in lines)


@pytest.mark.usefixtures("compacted")
def test_json_has_what_the_service_tells(learn):
    code, out, _ = learn("--json", "--strategy", "summary", "--role", "main")
    assert code == 0
    told = json.loads(out)
    assert told["version"] > 0
    [row] = told["roles"]
    assert [one["strategy"] for one in row["compactions"]] == ["summary"]
    assert row["compactions"][0]["context_after_tokens"]["median"] == 44_000
    assert row["gap_seconds"]["median"] == 29 * 60


@pytest.mark.usefixtures("compacted")
def test_a_model_is_asked_for(learn):
    code, out, _ = learn("--model", "m", "--json")
    assert code == 0
    assert [(row["role"], row["model"]) for row in json.loads(out)["roles"]] == [("main", "m")]
    assert learn("--model", "m")[1].startswith("main, m\n")


@pytest.mark.usefixtures("compacted")
def test_an_unknown_strategy_is_refused(learn):
    code, out, err = learn("--strategy", "magic")
    assert (code, out) == (2, "")
    assert "--strategy" in err
    assert "magic" in err
    assert "summary" in err


@pytest.mark.usefixtures("compacted")
def test_a_role_that_is_not_there_is_said_to_be_unknown(sqlite_ledger, learn, capsys):
    asked = ["thresholds", "nobody", "--model", "claude-opus-4-8", "--db", str(sqlite_ledger.url)]
    assert run(asked) == 0
    for err in (capsys.readouterr().err, learn("--role", "nobody")[2]):
        assert err == (
            "role nobody is not in this ledger (known: main); what stands in for it is shown\n"
        )
    assert learn("--role", "main")[2] == ""


@pytest.mark.usefixtures("compacted")
@pytest.mark.parametrize(("strategy", "notes"), [("foo", 1), ("summary", 0)])
def test_a_decision_says_that_nothing_was_learned_of_a_strategy(
    sqlite_ledger, capsys, strategy, notes
):
    asked = ["decide", "--role", "main", "--calls", "1", "--cost", "9", "--saving", "3"]
    assert run([*asked, "--strategy", strategy, "--db", str(sqlite_ledger.url)]) == 0
    assert capsys.readouterr().out.count(f"nothing was learned of strategy {strategy}") == notes
