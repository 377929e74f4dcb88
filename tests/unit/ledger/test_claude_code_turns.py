"""Where turns begin and how they stop: prompts, commands, interruptions, errors."""

import pytest

from ledger.events import TurnStarted
from tests.unit.ledger.transcript import (
    START_MS,
    Transcript,
    notification,
    read,
    said,
    tokens,
    use,
)

ENDED = ("main", "prompt", "ended", "final_text", 1, 0)
LOCAL = [
    "<local-command-stdout>Bye!</local-command-stdout>",
    "<local-command-caveat>Caveat: …</local-command-caveat>",
    "<bash-input>ls</bash-input>",
    "<bash-stdout>a.py</bash-stdout><bash-stderr></bash-stderr>",
]


@pytest.fixture
def log():
    return Transcript()


def finished_turn(log, uuid="p1", message_id="m1"):
    log.user("Fix it.", uuid=uuid)
    log.answer(message_id, said())


def test_a_turn_is_told_with_its_beginning_and_end(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.result("t1")
    log.answer("m2", said())
    told = read(log)
    assert told.started["p1"] == TurnStarted(
        turn_id="p1",
        session_id="s1",
        thread_id="s1",
        source="claude-code",
        role="main",
        at_ms=START_MS,
        model="claude-opus-4-6",
        provider="anthropic",
        trigger="prompt",
        on_request=True,
    )
    assert told.only_turn == ("main", "prompt", "ended", "final_text", 2, 1)
    assert told.reached["p1"].at_ms == START_MS + 3000


def test_a_prompt_may_be_text_blocks(log):
    log.user([{"type": "text", "text": "Fix it."}, {"type": "image"}], uuid="p1")
    log.answer("m1", said())
    assert read(log).turns == {"p1": ENDED}


@pytest.mark.parametrize("text", LOCAL)
def test_output_of_local_commands_begins_no_turn(log, text):
    finished_turn(log)
    log.user(text)
    log.answer("m2", said())
    assert read(log).turns == {"p1": ("main", "prompt", "ended", "final_text", 2, 0)}


def test_a_built_in_command_causes_no_turn(log):
    finished_turn(log)
    log.user("<command-name>/model</command-name>", uuid="c1")
    log.user("<local-command-stdout>Set model.</local-command-stdout>")
    finished_turn(log, "p2", "m2")
    assert read(log).turns == {"p1": ENDED, "p2": ENDED}


def test_a_custom_command_is_a_turn_that_begins_with_the_command(log):
    log.user("<command-message>review</command-message>\n<command-name>/review", uuid="c1")
    log.user([{"type": "text", "text": "Review the branch."}], isMeta=True)
    log.answer("m1", said())
    assert read(log).turns == {"c1": ("main", "slash", "ended", "final_text", 1, 0)}


def test_a_meta_line_alone_begins_no_turn(log):
    finished_turn(log)
    log.user("Continue from where you left off.", isMeta=True)
    log.answer("m2", said())
    assert list(read(log).turns) == ["p1"]


def test_a_scheduled_task_begins_a_turn_with_a_meta_prompt(log):
    finished_turn(log)
    log.system("scheduled_task_fire", content="Running scheduled task")
    log.user("Check the build.", uuid="p2", isMeta=True)
    log.answer("m2", said())
    finished_turn(log, "p3", "m3")
    told = read(log).turns
    assert told["p2"] == ("main", "scheduled", "ended", "final_text", 1, 0)
    assert told["p3"] == ENDED


def test_a_notification_between_turns_begins_one(log):
    finished_turn(log)
    log.user(notification("b1"), uuid="n1")
    log.answer("m2", said())
    expected = ("main", "task_notification", "ended", "final_text", 1, 0)
    assert read(log).turns == {"p1": ENDED, "n1": expected}


@pytest.mark.parametrize(
    ("mode", "text"), [("prompt", "Use tabs."), ("task-notification", notification("b1"))]
)
def test_input_queued_in_mid_turn_begins_none(log, mode, text):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.loose("queue-operation", operation="enqueue", sessionId="s1", content=text)
    log.result("t1")
    log.loose("queue-operation", operation="remove", sessionId="s1")
    log.queued(text, mode)
    log.answer("m2", said())
    assert read(log).only_turn == ("main", "prompt", "ended", "final_text", 2, 1)


@pytest.mark.parametrize("wanted", ["", " for tool use"])
def test_an_interruption_cuts_the_turn(log, wanted):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.user([{"type": "text", "text": f"[Request interrupted by user{wanted}]"}])
    finished_turn(log, "p2", "m2")
    cut = ("main", "prompt", "cut", "interrupted", 1, 1)
    assert read(log).turns == {"p1": cut, "p2": ENDED}


def test_an_interruption_in_mid_answer_cuts_although_text_came(log):
    finished_turn(log)
    log.user("[Request interrupted by user]")
    assert read(log).only_turn == ("main", "prompt", "cut", "interrupted", 1, 0)


def test_an_interruption_beside_the_rejected_tool_result(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.user(
        [
            {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "rejected"},
            {"type": "text", "text": "[Request interrupted by user for tool use]"},
        ]
    )
    assert read(log).only_turn == ("main", "prompt", "cut", "interrupted", 1, 1)


@pytest.mark.parametrize("notified_first", [False, True])
def test_a_notification_in_the_same_millisecond_begins_the_next_turn(log, notified_first):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    for notify in (notified_first, not notified_first):
        log.seconds = 2
        if notify:
            log.user(notification("b1"), uuid="n1")
        else:
            log.user([{"type": "text", "text": "[Request interrupted by user]"}])
    log.answer("m2", said())
    assert read(log).turns == {
        "p1": ("main", "prompt", "cut", "interrupted", 1, 1),
        "n1": ("main", "task_notification", "ended", "final_text", 1, 0),
    }


def test_an_interruption_before_the_first_request_leaves_the_last_turn_alone(log):
    finished_turn(log)
    log.user("Another thing.", uuid="p2")
    log.user("[Request interrupted by user]")
    assert read(log).turns == {"p1": ENDED}


def test_an_api_error_line_cuts_the_turn(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.result("t1")
    log.answer(
        "x1",
        said("API Error: Rate limit reached"),
        model="<synthetic>",
        usage=tokens(0, 0, 0, 0),
        isApiErrorMessage=True,
        error="rate_limit",
    )
    log.system("turn_duration", durationMs=1)
    assert read(log).only_turn == ("main", "prompt", "cut", "api_error", 1, 1)


def test_a_retried_api_error_lets_the_turn_go_on(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.result("t1")
    log.system("api_error", retryAttempt=1, maxRetries=10, retryInMs=534.7)
    assert read(log).only_turn == ("main", "prompt", "open", "in_flight", 1, 1)
    log.answer("m2", said())
    assert read(log).only_turn == ("main", "prompt", "ended", "final_text", 2, 1)


def test_a_tool_may_end_the_turn(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1", "StructuredOutput"))
    log.result("t1", toolEndsTurn=True)
    assert read(log).only_turn == ("main", "prompt", "ended", "tool_ended_turn", 1, 1)


@pytest.mark.parametrize("subtype", ["stop_hook_summary", "turn_duration"])
def test_the_harness_may_tell_the_end_without_a_last_word(log, subtype):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", {"type": "thinking", "thinking": ""})
    assert read(log).only_turn == ("main", "prompt", "open", "in_flight", 1, 0)
    log.system(subtype)
    assert read(log).only_turn == ("main", "prompt", "ended", "stopped", 1, 0)


def test_a_stop_hook_opens_the_turn_again(log):
    finished_turn(log)
    log.system("stop_hook_summary")
    log.system("turn_duration", durationMs=1)
    log.user("Stop hook feedback: run the tests.", isMeta=True)
    log.answer("m2", use("t1"))
    assert read(log).only_turn == ("main", "prompt", "open", "in_flight", 2, 1)
    log.result("t1")
    log.answer("m3", said())
    assert read(log).only_turn == ("main", "prompt", "ended", "final_text", 3, 1)


def test_a_file_that_stops_at_a_tool_leaves_the_turn_open(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    assert read(log).only_turn == ("main", "prompt", "open", "in_flight", 1, 1)
    log.result("t1")
    assert read(log).only_turn == ("main", "prompt", "open", "in_flight", 1, 1)


def test_a_prompt_after_an_unfinished_turn_cuts_it(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    finished_turn(log, "p2", "m2")
    assert read(log).turns == {"p1": ("main", "prompt", "cut", "superseded", 1, 1), "p2": ENDED}


def test_clear_in_mid_file_begins_a_new_session(log):
    finished_turn(log)
    log.session = "s2"
    log.user("<command-name>/clear</command-name>", session_id="s1")
    log.user("<local-command-stdout></local-command-stdout>", session_id="s1")
    log.user("Next.", uuid="p2", session_id="s1")
    log.answer("m2", said(), session_id="s1")
    told = read(log)
    assert told.turns == {"p1": ENDED, "p2": ENDED}
    assert {turn.turn_id: turn.session_id for turn in told.started.values()} == {
        "p1": "s1",
        "p2": "s2",
    }


def test_a_log_that_begins_in_mid_turn_does_not_know_its_entry(log):
    log.answer("m7", said(), uuid="a7", parentUuid="elsewhere")
    (started,) = read(log).started.values()
    assert (started.entry_calls, started.entry_requests) == (None, None)
    assert started.trigger == "unknown"


def test_lines_without_a_session_belong_to_the_files_stem(log):
    finished_turn(log)
    for line in log.lines:
        del line["sessionId"]
    assert read(log).started["p1"].session_id == "stem"


def test_unknown_line_types_are_counted_and_skipped(log):
    finished_turn(log)
    log.loose("not-yet-invented", usage={"input_tokens": 999_999}, message={"id": "x"})
    log.loose("not-yet-invented")
    log.loose("summary", summary="Fixing")
    log.loose("file-history-snapshot", messageId="p1")
    log.lines.append({"no": "type"})
    told = read(log)
    assert told.turns == {"p1": ENDED}
    assert told.reader.unknown_types == {"not-yet-invented": 2, "None": 1}


def test_roles_by_project_carry_the_folders_name(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", said(), cwd="/home/dev/shop")
    assert read(log, role_by_project=True).only_turn[0] == "shop/main"


def test_a_line_said_twice_changes_nothing(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.result("t1")
    log.answer("m2", said())
    log.lines = [line for line in log.lines for _ in range(2)]
    assert read(log).only_turn == ("main", "prompt", "ended", "final_text", 2, 1)


def test_a_prompt_whose_session_gets_a_new_id_before_the_answer(log):
    log.user("<command-name>/clear</command-name>", uuid="c1")
    log.user("Next.", uuid="p1")
    log.session = "s2"
    log.answer("m1", said())
    told = read(log)
    assert told.turns == {"p1": ENDED}
    assert told.started["p1"].session_id == "s2"
    assert told.started["p1"].entry_calls == 0


def test_a_line_written_late_does_not_set_the_turn_back(log):
    log.user("Fix it.", uuid="p1")
    log.answer("m1", use("t1"))
    log.seconds = 9
    log.answer("m2", said())
    log.seconds = 5
    log.result("t1")
    told = read(log)
    assert told.only_turn == ("main", "prompt", "ended", "final_text", 2, 1)
    assert told.reached["p1"].at_ms == START_MS + 9000


def test_a_session_told_twice_over_is_the_session(log):
    for number in (1, 2, 3):
        log.user("Fix it.", uuid=f"p{number}")
        log.answer(f"m{number}a", use(f"t{number}"))
        log.result(f"t{number}")
        log.answer(f"m{number}b", said())
    once = read(log)
    log.lines = [*log.lines[:10], *log.lines]
    twice = read(log)
    assert twice.turns == once.turns
    assert twice.reached == once.reached
    assert twice.requests == once.requests
