"""`compactuary thresholds`: what the service serves, and what people read."""

import json


def test_a_role_for_people_and_for_programs(compactuary, example_ledger):
    asked = ("thresholds", "dev-front", "--model", "claude-opus-4-8", "--db", example_ledger)
    said = json.loads(compactuary(*asked, "--json").out)
    assert said["rule"] == "renewal"
    # The example's dev-front makes .907 requests per tool call.
    assert 0.85 < said["requests_per_call"] < 0.95
    first, *lines = compactuary(*asked).out.splitlines()
    assert first == "dev-front on claude-opus-4-8: renewal compacts"
    rows = {line[2:26].strip(): line[26:] for line in lines}
    assert rows["after 10 requests"] == f"from {said['at_call'][10]:>11,.0f} tokens"
    assert rows["at the end of a turn"] == f"from {said['at_turn_end']:>11,.0f} tokens"
    assert all(len(line) <= 80 for line in lines)


def test_a_decision_has_the_threshold_of_its_place(compactuary, example_ledger):
    asked = ("--model", "claude-opus-4-8", "--db", example_ledger, "--json")
    table = json.loads(compactuary("thresholds", "dev-front", *asked).out)
    where = ("--role", "dev-front", "--calls", 30, "--context", 150_000)
    decided = json.loads(compactuary("decide", *where, *asked).out)
    made = round(30 * table["requests_per_call"])
    assert decided["threshold_tokens"] == table["at_call"][made]


def test_wrong_words_are_named(compactuary, example_ledger):
    done = compactuary("thresholds", "main", "--model", "nope", "--db", example_ledger)
    assert done.code == 2
    assert done.err.startswith("error: model: ")
    done = compactuary(
        "thresholds", "main", "--model", "gpt-5.5", "--rule", "coin", "--db", example_ledger
    )
    assert done.code == 2
    assert "Known: occupancy, break-even," in done.err
