"""Damaged lines are read, or refuse their file; they never crash, and never land by half."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compactuary.errors import SourceError
from ledger.importing import ImportOptions, import_logs
from tests.integration.ledger.rows import everything, kept, recounted
from tests.unit.ledger.transcript import Transcript, notification, said, tokens, use


def shaped_like_real(own):
    """One line at least of every shape that the reader tells apart, with ids of their own."""
    agent_id = f"a{own}"
    log = Transcript(f"s{own}")
    log.user("Fix it.", uuid=f"p{own}", cwd="/home/dev/shop", promptId="x")
    log.answer(f"m1-{own}", {"type": "thinking", "thinking": ""}, said("Looking."))
    log.answer(f"m1-{own}", use(f"t1-{own}"), usage=tokens(output=80))
    log.result(f"t1-{own}", toolUseResult={"stdout": "", "interrupted": False})
    log.answer(f"m2-{own}", use(f"call-{own}", "Task", subagent_type="Explore"))
    agent = Transcript(f"s{own}", agent=agent_id)
    agent.user("Look around.")
    agent.answer(f"am-{own}", use(f"at-{own}"))
    for line in agent.lines:
        log.progress(f"call-{own}", agent_id, line)
    told = {"agentId": agent_id, "status": "completed", "totalToolUseCount": 1}
    log.result(f"call-{own}", toolUseResult=told | {"agentType": "Plan"})
    log.compacted(uuid=f"c{own}")
    usage = tokens() | {
        "iterations": [{"type": "message", **tokens()}, {"type": "message", **tokens()}],
        "output_tokens_details": {"thinking_tokens": 2},
    }
    log.answer(f"m3-{own}", said(), usage=usage)
    log.system("turn_duration", durationMs=1)
    log.user(notification(agent_id, tool_uses=4), uuid=f"n{own}")
    log.answer(f"m4-{own}", use(f"t4-{own}"))
    log.queued(notification(agent_id, "failed"), "task-notification")
    log.system("microcompact_boundary", microcompactMetadata={"preTokens": 9, "trigger": "auto"})
    log.answer(f"m5-{own}", said("API Error"), model="<synthetic>", isApiErrorMessage=True)
    log.lines += [line | {"session_id": "s0"} for line in agent.lines]
    log.loose("queue-operation", operation="enqueue")
    return log.lines


#: Values that logs do not hold where others are, among them what databases can't keep.
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(2**31 - 2, 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["\0", "assistant", "user", "a1", "s1", "p1", "m1", "t1", ["x"], {}]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=4), st.integers(), max_size=2),
)


def places(value, path=()):
    """Yield the path of every value inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in inside:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


SHAPES = shaped_like_real(0)
PLACES = [(number, path) for number, line in enumerate(SHAPES) for path in places(line)]
DELETED = object()


def changed(line, path, value):
    line = json.loads(json.dumps(line))
    holder = line
    for key in path[:-1]:
        holder = holder[key]
    if value is DELETED:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return line


def import_lines(engine, folder, name, data):
    """Import a file of this name and content; return the error that refused it."""
    path = folder / f"{name}.jsonl"
    path.write_bytes(data)
    (report,) = import_logs(engine, [path], ImportOptions(role_by_project=True))
    return report.error


def check(engine, folder, number, data):
    before = everything(engine)
    error = import_lines(engine, folder, f"f{number}", data)
    if error is not None:
        assert isinstance(error, SourceError)
        assert f"f{number}.jsonl" in error.where
        assert error.remedy
        assert everything(engine) == before
    assert kept(engine) == recounted(engine)


def written(lines):
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "logs"
    path.mkdir()
    return path


SETTINGS = settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
DAMAGE = st.tuples(st.sampled_from(PLACES), ODD | st.just(DELETED))


@SETTINGS
@given(damages=st.lists(DAMAGE, min_size=1, max_size=2))
def test_odd_values(ledger, folder, damages):
    number = len(list(folder.iterdir()))
    lines = shaped_like_real(number)
    for (place, path), value in damages:
        try:
            lines[place] = changed(lines[place], path, value)
        except (LookupError, TypeError):
            continue  # the first damage took the place away
    check(ledger, folder, number, written(lines))


ORDER = st.lists(st.sampled_from(range(len(SHAPES))), max_size=40)


@SETTINGS
@given(order=ORDER, tear=st.integers(0, 200))
def test_lines_in_any_order_dropped_or_told_twice(sqlite_ledger, folder, order, tear):
    number = len(list(folder.iterdir()))
    lines = shaped_like_real(number)
    data = written(lines[place] for place in order)
    check(sqlite_ledger, folder, number, data[: max(0, len(data) - tear)])


@SETTINGS
@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"{}", b"[]", b"null", b"1"])))
def test_bytes_of_any_kind(sqlite_ledger, folder, lines):
    check(sqlite_ledger, folder, len(list(folder.iterdir())), b"\n".join(lines))


@pytest.mark.parametrize("value", [None, [], {}, "x", 7, True])
@pytest.mark.parametrize("kind", ["user", "assistant", "system", "progress", "attachment"])
def test_every_kind_of_line_with_a_body_of_the_wrong_shape(sqlite_ledger, folder, kind, value):
    line = {"type": kind, "message": value, "data": value, "attachment": value, "uuid": "u"}
    check(sqlite_ledger, folder, 0, written([line]))
