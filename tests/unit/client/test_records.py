import json
import re
from collections import namedtuple
from types import SimpleNamespace

import pytest

from api.schemas import CompactionBody, EndBody, RequestBody, TurnBody
from compactuary.errors import InputError
from compactuary.json_bytes import json_bytes
from compactuary.records import (
    calls_in,
    compaction_made,
    new_id,
    request_made,
    turn_ended,
    turn_started,
)


def test_every_record_is_what_the_service_takes():
    turn = turn_started("t", "main", "s", model="m", provider=None, entry_calls=3)
    request = request_made("t", "r", {"output": 1}, [("c", "Bash")], model="m")
    end = turn_ended("t", "cut", reason="ValueError", tool_calls=4)
    compaction = compaction_made("s", 9, context_after=5, turn_id="t", calls_before=1)
    for record, path, schema in [
        (turn, "/turns/t", TurnBody),
        (request, "/turns/t/requests", RequestBody),
        (end, "/turns/t/end", EndBody),
        (compaction, "/compactions", CompactionBody),
    ]:
        assert record.path == path
        assert schema.model_validate_json(record.body)
    assert [turn.method, request.method, end.method, compaction.method] == [
        "PUT",
        "POST",
        "POST",
        "POST",
    ]
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", json.loads(turn.body)["started_at"]
    )


def test_a_compaction_has_an_id_that_stays_with_it():
    first, second = (json.loads(compaction_made("s", 9).body)["compaction_id"] for _ in range(2))
    assert first != second
    assert json.loads(compaction_made("s", 9, compaction_id="mine").body)["compaction_id"] == "mine"


@pytest.mark.parametrize("turn_id", ["a/b?c#d e%", "é\N{SNOWMAN}", "..", "\ud800"])
def test_a_turn_s_id_can_be_anything(turn_id):
    path = turn_started(turn_id, "main", "s").path
    assert re.fullmatch(r"/turns/[A-Za-z0-9_.~%-]+", path)


@pytest.mark.parametrize("turn_id", ["", None, 5])
def test_but_has_to_be_a_name(turn_id):
    with pytest.raises(InputError, match="turn_id: must be a name"):
        turn_ended(turn_id)


@pytest.mark.parametrize(
    "tool_calls",
    [
        [{"id": "c", "name": "Bash", "input": {"secret": 1}}],
        [("c", "Bash")],
        (SimpleNamespace(id="c", name="Bash"),),
        iter([["c", "Bash"]]),
    ],
)
def test_calls_come_in_many_forms_and_only_names_go_on(tool_calls):
    assert calls_in(tool_calls) == [{"id": "c", "name": "Bash"}]


def test_or_as_how_many():
    assert calls_in(3) == 3
    assert calls_in(None) == calls_in([]) == []


@pytest.mark.parametrize("tool_calls", ["Bash", {"id": "c"}, True, 1.5])
def test_what_is_no_calls_is_refused(tool_calls):
    with pytest.raises(InputError, match="tool_calls: are no calls"):
        calls_in(tool_calls)


class Dumped:
    def model_dump(self):
        return {"output": 1}


class Plain:
    def __init__(self):
        self.output = 1
        self._client = object()


@pytest.mark.parametrize(
    "usage", [{"output": 1}, Dumped(), Plain(), namedtuple("Usage", "output")(1)._asdict()]
)
def test_usage_may_be_an_sdk_s_own_object(usage):
    assert json.loads(request_made("t", "r", usage).body)["usage"] == {"output": 1}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object, {1: {2: b"x"}}])
def test_what_json_has_no_words_for_is_refused(value):
    if value is object:
        value = [value]
        value.append(value)
    with pytest.raises(InputError, match="is no JSON"):
        json_bytes({"value": value})


def test_a_whole_answer_is_no_usage():
    with pytest.raises(InputError, match="Give the usage object alone"):
        request_made("t", "r", {"text": "x" * 300_000})


def test_new_ids_grow_and_differ():
    ids = [new_id() for _ in range(1000)]
    assert len({*ids}) == 1000
    assert ids[0][:12] <= ids[-1][:12]
