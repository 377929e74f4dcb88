"""Tables by hand: turns in, figures out, in every form."""

import json

import pytest

from cli.app import run

HEAD = "turn_id,role,model,started_at,ended_at,status,tool_calls"


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("COMPACTUARY_DB", str(tmp_path / "ledger.db"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def printed(tmp_path, capsys):
    """Return what writes turns (role, model, status, calls), in the order of time, and asks."""

    def ask(turns, *words):
        rows = [
            f"t{place},{role},{model},2026-01-01T00:{place:02d}:00Z,2026-01-01T00:{place:02d}:30Z,"
            f"{status},{calls}"
            for place, (role, model, status, calls) in enumerate(turns)
        ]
        (tmp_path / "turns.csv").write_text("\n".join([HEAD, *rows, ""]))
        assert run([*words, "--from", "turns.csv"]) == 0
        return capsys.readouterr().out

    return ask


def ended(role, *calls, model=""):
    return [(role, model, "ended", made) for made in calls]


# 10 turns of 1 call, 10 of 2, 20 of 3, and one cut when it had issued 3: at risk up to call 2
LIVES = [*ended("qa", *[1] * 10, *[2] * 10, *[3] * 20), ("qa", "", "cut", 3)]


def test_a_life_table_in_json_by_hand(printed):
    rows = json.loads(printed(LIVES, "table", "--life-table", "--role", "qa", "--json"))
    names = ["age", "at_risk", "ended", "hazard", "survival", "m", "lower", "upper", "median"]
    assert [list(row) for row in rows] == [[*names, "extrapolated"]] * 3
    assert [(row["age"], row["at_risk"], row["ended"], row["median"]) for row in rows] == [
        (0, 41, 10, 3),  # 21/41 are still going after 2 calls
        (1, 31, 10, 2),
        (2, 20, 20, 1),
    ]
    assert [row["hazard"] for row in rows] == pytest.approx([10 / 41, 10 / 31, 1])
    assert [row["survival"] for row in rows] == pytest.approx([1, 31 / 41, 21 / 41])
    # backwards: 1, then 1 + 21/31, then 1 + 31/41 of that
    assert [row["m"] for row in rows] == pytest.approx([93 / 41, 52 / 31, 1])
    assert all(1 <= row["lower"] <= row["m"] <= row["upper"] for row in rows)
    assert not any(row["extrapolated"] for row in rows)


def test_a_life_table_in_the_actuarys_columns(printed):
    words = ["table", "--life-table", "--role", "qa"]
    text = printed(LIVES, *words)
    assert text.startswith("Life table of qa: 41 turns with at least one call, 40 ends.\n")
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines()]
    l_d_q_p_e = [row[:6] for row in cells if row]
    assert l_d_q_p_e == [
        ["0", "100,000", "24,390", "0.24390", "0.75610", "1.27"],
        ["1", "75,610", "24,390", "0.32258", "0.67742", "0.68"],
        ["2+", "51,220", "51,220", "1.00000", "0.00000", "0.00"],
    ]
    assert "Raw: every turn counts alike.\n" in text
    assert printed(LIVES, *words, "--format", "csv").splitlines()[0].startswith("age,l,d,q,p,e,m,")
    assert json.loads(printed(LIVES, *words, "--format", "jsonl").splitlines()[2])["m"] == 1.0


def test_the_table_in_json_by_hand(printed):
    turns = [*ended("few", 1, 2, 3, 4, 10), *ended("one", 7), ("open", "", "cut", 4)]
    rows = json.loads(printed(turns, "table", "--json", "--at", "0,9"))
    # no open tail but the whole: 20 calls, 5 ends; a role without an end has no estimate
    assert [(row["role"], row["turns"], row["m"]) for row in rows] == [
        ("few", 5, {"0": 4.0, "9": 4.0}),
        ("one", 1, {"0": 7.0, "9": 7.0}),
    ]
    # .75³ = .42 is the first power not above a half
    assert {name: rows[0][name] for name in ("mean", "p50", "extrapolated", "at_risk")} == {
        "mean": 4.0,
        "p50": 3,
        "extrapolated": [9],
        "at_risk": {"0": 5, "9": 5},
    }
    assert (rows[0]["unit"], rows[0]["requests_per_call"]) == ("tool_calls", None)


def test_all_roles_together_stand_in_what_people_read_only(printed):
    turns = [*ended("a", 1, 3), *ended("b", 5)]
    for form in ("text", "markdown", "latex", "html"):
        assert printed(turns, "table", "--format", form, "--at", "0").count("all roles") == 1
    for form in ("csv", "json", "jsonl"):
        assert "all roles" not in printed(turns, "table", "--format", form, "--at", "0")
    assert "│ all roles │     3 │  3.0 │" in printed(turns, "table", "--at", "0")


def test_a_turn_counts_half_a_half_life_later(printed):
    words = ["table", "--at", "0", "--decay", "1"]
    row = json.loads(printed(ended("dev", 2, 4), *words, "--json"))[0]
    assert row["turns"] == pytest.approx(1.5)
    assert row["m"]["0"] == pytest.approx((0.5 * 2 + 4) / 1.5)
    assert row["half_life_turns"] == 1
    # Only turns of its own role make a turn old.
    mixed = [*ended("dev", 2), *ended("qa", 9, 9, 9), *ended("dev", 4)]
    rows = {row["role"]: row for row in json.loads(printed(mixed, *words, "--json"))}
    assert rows["dev"]["m"] == row["m"]
    assert rows["qa"]["turns"] == pytest.approx(1.75)
    text = printed(mixed, *words)
    assert "Decayed: weights halve every 1 turns of the role.\n" in text
    # (1 + 4 + 1.75·9) calls in (1.5 + 1.75) turns
    assert "│ all roles │     3 │  6.4 │" in text


def test_models_of_a_role_are_weighed_in_the_roles_own_time(printed):
    turns = [*ended("dev", 2, model="old"), *ended("dev", 4, 4, model="new")]
    rows = json.loads(printed(turns, "table", "--by-model", "--decay", "1", "--json"))
    assert [(row["model"], row["turns"], row["mean"]) for row in rows] == [
        ("new", pytest.approx(1.5), pytest.approx(4)),
        ("old", pytest.approx(0.25), pytest.approx(2)),
    ]


def test_without_end_to_the_half_life_nothing_is_forgotten(printed):
    raw = json.loads(printed(LIVES, "table", "--json"))[0]
    slow = json.loads(printed(LIVES, "table", "--json", "--decay", "1e18"))[0]
    assert slow.pop("half_life_turns") == 1e18
    for name in ("m", "lower", "upper", "at_risk"):
        assert slow.pop(name) == pytest.approx(raw.pop(name))
    assert slow == raw


def test_each_model_has_its_row_and_its_break_even(printed):
    # Opus 4.8 and Haiku 4.5 weigh tokens alike, Gemini's cached ones differ: other break-evens.
    turns = [
        *ended("dev", *[30] * 3, model="claude-opus-4-8"),
        *ended("dev", *[4] * 2, model="gpt-4o"),
    ]
    text = printed(turns, "table", "--by-model", "--at", "0")
    lines = [line for line in text.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in line.split("│")[1:4]] for line in lines] == [
        ["dev", "claude-opus-4-8", "3"],
        ["dev", "gpt-4o", "2"],
    ]
    assert "break-even ┃" in text
    assert "Compacting pays above the row's break-even, in requests.\n" in text
    assert "Break-evens: each row's model, 150,000 tokens.\n" in text


def test_detail_shows_interval_and_turns_at_risk(printed):
    text = printed(LIVES, "table", "--at", "2", "--detail")
    assert "; 20) │" in text
    assert "In parentheses: 90% interval; turns at risk for the next call.\n" in text


def test_a_pipe_names_what_a_terminal_shows_bold(printed, monkeypatch):
    words = ["table", "--at", "0", "--break-even", "1.5", "--role", "a"]
    assert "Compacting pays above the break-even of 1.5 requests.\n" in printed(
        ended("a", 2), *words
    )
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = printed(ended("a", 2), *words)
    assert "Bold: above the break-even of 1.5 requests.\n" in text


def test_names_cannot_reach_the_terminal(printed):
    turns = ended("a\x1b[31m|[bold]b[/c]", 2)
    assert "│ a [31m|[bold]b[/c] │" in printed(turns, "table", "--at", "0")
    assert "| a \\[31m\\|\\[bold\\]b\\[/c\\] |" in printed(
        turns, "table", "--at", "0", "--format", "markdown"
    )


def test_a_picture_is_drawn_beside_the_table(printed, tmp_path, capsys):
    text = printed(LIVES, "table", "--save", "m.svg", "--at", "0")
    assert "│ qa" in text
    assert "qa" in (tmp_path / "m.svg").read_text("utf-8")


def test_what_a_font_lacks_is_noted_once_and_no_warning(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("turn_id,role,tool_calls\na,日日,2\n", "utf-8")
    assert run(["table", "--from", "t.csv", "--save", "m.png"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert told[-1] == "drew m.png"
    assert [line.startswith("note: Glyph") for line in told[:-1]] == [True]


def test_of_many_roles_those_with_most_turns_are_drawn(tmp_path, capsys):
    rows = [f"t{role}-{turn},r{role:02d},2" for role in range(18) for turn in range(role + 1)]
    (tmp_path / "t.csv").write_text("\n".join(["turn_id,role,tool_calls", *rows, ""]))
    assert run(["table", "--from", "t.csv", "--save", "m.svg"]) == 0
    assert capsys.readouterr().err == "drew m.svg, of 18 the 16 with most turns\n"
    drawn = (tmp_path / "m.svg").read_text()
    assert "r17" in drawn
    assert "r01" not in drawn


def test_a_role_without_an_end_is_refused_by_name(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("turn_id,role,status,tool_calls\na,dev,ended,2\nb,qa,cut,2\n")
    assert run(["table", "--from", "t.csv", "--role", "qa"]) == 2
    assert "no turn of this role has ended (got 'qa')" in capsys.readouterr().err
    assert run(["table", "--from", "t.csv", "--at", "0"]) == 0
    # beside others its turns are shown, without an estimate
    assert "│ qa        │     1 │      │     │      │" in capsys.readouterr().out


def test_logs_without_an_end_say_so(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("turn_id,role,status,tool_calls\nb,qa,cut,2\n")
    assert run(["table", "--from", "t.csv"]) == 0
    assert capsys.readouterr() == ("", "No turn has ended in these logs yet.\n")
    assert run(["table", "--from", "t.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
