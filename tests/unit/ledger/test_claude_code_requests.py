"""Assistant lines → requests: one a message id, however its lines are spread and ordered."""

import pytest

from compactuary.errors import InputError
from ledger.usage import Usage
from tests.unit.ledger.transcript import OPUS, START_MS, Transcript, read, said, tokens, use


@pytest.fixture
def session():
    log = Transcript()
    log.user("Fix it.", uuid="p1")
    return log


def test_lines_of_a_message_are_one_request_with_the_last_output(session):
    session.answer("m1", {"type": "thinking", "thinking": ""}, usage=tokens(3, 17_842, 8_037, 10))
    session.answer("m1", said("Looking."), usage=tokens(3, 17_842, 8_037, 10))
    session.answer("m1", use("t1"), usage=tokens(3, 17_842, 8_037, 441))
    told = read(session)
    assert list(told.requests) == ["m1"]
    request = told.requests["m1"]
    assert request.usage == Usage(uncached=3, cache_read=17_842, cache_write_5m=8_037, output=441)
    assert (request.turn_id, request.position, request.model) == ("p1", 0, OPUS)
    assert request.at_ms == START_MS + 1000
    assert request.tool_calls == (("t1", "Bash"),)


def test_an_output_of_the_stream_start_is_kept_where_the_log_has_no_other(session):
    session.answer("m1", said("Done."), usage=tokens(output=1))
    assert read(session).requests["m1"].usage.output == 1


def test_tool_uses_split_over_lines_with_results_in_between(session):
    session.answer("m1", use("t1", "Read"))
    session.result("t1")
    session.answer("m1", use("t2", "Grep"))
    session.result("t2")
    session.answer("m2", said())
    told = read(session)
    assert told.requests["m1"].tool_calls == (("t1", "Read"), ("t2", "Grep"))
    assert told.only_turn == ("main", "prompt", "ended", "final_text", 2, 2)


def test_parallel_tools_in_one_line_are_as_many_calls(session):
    session.answer("m1", use("t1"), use("t2"), use("t3"))
    session.result("t1", "t2", "t3")
    session.answer("m2", said())
    assert read(session).only_turn == ("main", "prompt", "ended", "final_text", 2, 3)


def test_a_tool_use_told_by_two_lines_is_one_call(session):
    session.answer("m1", use("t1"))
    session.answer("m1", use("t1"))
    assert read(session).requests["m1"].tool_calls == (("t1", "Bash"),)


def test_a_result_before_its_tool_use(session):
    session.answer("m1", said("Looking."))
    session.result("t1")
    session.answer("m1", use("t1"))
    told = read(session)
    assert told.only_turn == ("main", "prompt", "open", "in_flight", 1, 1)
    session.answer("m2", said())
    assert read(session).only_turn == ("main", "prompt", "ended", "final_text", 2, 1)


def test_a_late_line_of_an_earlier_message_adds_its_tool_and_no_request(session):
    session.answer("m1", use("t1"))
    session.answer("m2", use("t2"))
    session.answer("m1", use("t3"))
    session.answer("m2", use("t4"))
    session.answer("m3", said())
    told = read(session)
    assert told.only_turn == ("main", "prompt", "ended", "final_text", 3, 4)
    positions = {key: request.position for key, request in told.requests.items()}
    assert positions == {"m1": 0, "m2": 1, "m3": 2}


def test_a_late_text_line_of_a_message_with_tools_does_not_end_the_turn(session):
    session.answer("m1", use("t1"))
    session.answer("m2", use("t2"))
    session.answer("m1", said("Looking."))
    assert read(session).only_turn == ("main", "prompt", "open", "in_flight", 2, 2)


def test_a_message_with_advisor_iterations_holds_the_context_of_the_last_one(session):
    usage = tokens(4, 131_000, 2_000, 900)
    usage["iterations"] = [
        {"type": "message", **tokens(2, 65_000, 1_000, 400)},
        {"type": "advisor_message", **tokens(1, 0, 70_000, 300)},
        {"type": "message", **tokens(2, 66_000, 1_000, 500)},
    ]
    session.answer("m1", said(), usage=usage)
    used = read(session).requests["m1"].usage
    assert used.context_tokens == 2 + 66_000 + 1_000
    assert used.output == 900


def test_synthetic_lines_are_no_requests(session):
    session.answer("m1", said())
    zero = tokens(0, 0, 0, 0)
    session.answer("x1", said("No response requested."), model="<synthetic>", usage=zero)
    told = read(session)
    assert list(told.requests) == ["m1"]
    assert told.only_turn == ("main", "prompt", "ended", "final_text", 1, 0)


def test_a_message_without_usage_or_content_is_still_a_request(session):
    line = session.answer("m1")
    del line["message"]["usage"]
    line["message"]["content"] = None
    assert read(session).requests["m1"].usage == Usage()


def test_a_message_without_an_id_goes_by_its_line(session):
    line = session.answer("m1", said(), uuid="a1")
    del line["message"]["id"]
    assert list(read(session).requests) == ["a1"]


def test_stop_reason_is_not_needed(session):
    session.answer("m1", said())["message"]["stop_reason"] = None
    session.answer("m2", said())["message"]["stop_reason"] = "end_turn"
    assert read(session).only_turn == ("main", "prompt", "ended", "final_text", 2, 0)


@pytest.mark.parametrize(
    ("damage", "field"),
    [
        ({"usage": {"input_tokens": -5}}, "usage.input_tokens"),
        ({"usage": {"output_tokens": 1.5}}, "usage.output_tokens"),
        ({"usage": {"cache_read_input_tokens": "many"}}, "usage.cache_read_input_tokens"),
        ({"id": 7}, "message.id"),
        ({"id": "m\0"}, "message.id"),
        ({"model": ["opus"]}, "message.model"),
        ({"content": [use(7)]}, "tool_use.id"),
        ({"content": [use("t1", {"n": 1})]}, "tool_use.name"),
    ],
)
def test_a_value_of_the_wrong_kind_names_its_field(session, damage, field):
    session.answer("m1", said())["message"] |= damage
    with pytest.raises(InputError) as caught:
        read(session)
    assert caught.value.where == field
    assert caught.value.remedy
