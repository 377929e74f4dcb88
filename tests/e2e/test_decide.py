"""What `compactuary decide` tells a person: the answer's numbers, and what they rest on."""

import json

import pytest

PRICED = ("--cost", 60_000, "--saving", 9_000)


@pytest.fixture
def decided(compactuary, example_ledger):
    """Return what asks once for people and once for programs: lines by their label, the answer."""

    def ask(*words, db=example_ledger):
        asked = ("decide", *words, *PRICED, "--db", db)
        answer = json.loads(compactuary(*asked, "--json").out)
        first, *lines = compactuary(*asked).out.splitlines()
        assert first == f"{answer['decision']}: {answer['reason']['text']}"
        return {line[2:14].strip(): line[14:] for line in lines}, answer

    return ask


def test_a_known_role_rests_on_its_own_turns(decided):
    lines, answer = decided("--role", "dev-front", "--calls", 30)
    # 214 of the example's 412 turns make more than 30 calls; none of them is cut.
    assert lines["rests on"] == "412 turns of dev-front (98%), all roles (2%)"
    assert lines["evidence"].startswith(
        "214 turns seen at this age, 214 of them to the end; credibility 0.98 ("
    )
    assert lines["evidence"].endswith(" effective ends, half-life 200 turns)")
    assert sum(share["weight"] for share in answer["basis"]["rests_on"]) == pytest.approx(1)


def test_a_small_role_borrows(decided):
    lines, answer = decided("--role", "Explore", "--calls", 0)
    # 4 ended turns against the vote of 3 others: 4/7.
    assert lines["rests on"] == "4 turns of Explore (57%), all roles (43%)"
    assert lines["evidence"].startswith("4 turns seen at this age, 4 of them to the end")
    assert answer["basis"]["credibility"] == pytest.approx(4 / 7, abs=1e-4)


def test_beyond_its_tail_a_role_says_so(decided):
    lines, answer = decided("--role", "dev-front", "--calls", 900)
    assert answer["basis"]["extrapolated"]
    assert lines["evidence"].startswith("past the open tail, which rests on 20 turns, 20 ")
    assert lines["rests on"].startswith("412 turns of dev-front (")


def test_an_unknown_role_rests_on_all_roles(decided):
    lines, answer = decided("--role", "nobody", "--calls", 3)
    assert answer["reason"]["text"].startswith("No nobody turn has ended yet. Turns of all roles")
    assert "turns of all roles" in lines["rests on"]


def test_an_empty_ledger_rests_on_the_standard_table(decided, compactuary, tmp_path):
    assert compactuary("db", "upgrade", "--db", tmp_path / "new.db").code == 0
    lines, answer = decided("--role", "nobody", "--calls", 3, db=tmp_path / "new.db")
    (share,) = answer["basis"]["rests_on"]
    assert answer["reason"]["text"].startswith("No turn has ended in this ledger yet.")
    assert lines["rests on"] == f"{share['turns']} turns of {share['name']} (100%)"
    assert "half-life" not in lines["evidence"]
