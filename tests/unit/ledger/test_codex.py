"""Codex rollouts: what is a turn, a request, a compaction, and what is a copy of another's."""

import json

import pytest

from ledger.events import CompactionMade
from ledger.readers.codex import CodexReader
from ledger.usage import Usage
from tests.unit.ledger.rollout import MODEL, START_MS, Rollout, uuid7
from tests.unit.ledger.told import Told

LOG = "/logs/rollout-1.jsonl"


def read(lines, **options):
    return read_on(lines, **options)[0]


def read_on(lines, saved=None, **options):
    """Feed lines, and return what was told, the reader, and where it stands."""
    reader = CodexReader(LOG, (saved or {}).get, continued=saved is not None, **options)
    for line in getattr(lines, "lines", lines):
        reader.feed(json.loads(json.dumps(line)))
    states = reader.flush()
    return Told(reader.events), reader, states


@pytest.fixture
def log():
    return Rollout().meta()


def test_a_turn_of_two_requests(log):
    log.task("t1").item("reasoning").calls("c1", "c2").usage(1_000, 700, 90, 30)
    log.answer().usage(1_200, 1_000, 50, 0).done()
    told = read(log)
    assert told.turns == {f"{log.session}/t1": ("main", "ended", "task_complete", 2, 2)}
    first, second = told.requests.values()
    # 1,000 tokens of input include the 700 that were cached.
    assert first.usage == Usage(300, 700, output=90, reasoning=30)
    assert second.usage == Usage(200, 1_000, output=50)
    assert [first.position, second.position] == [0, 1]
    assert first.tool_calls == (("c1", "exec_command"), ("c2", "exec_command"))
    # The reasoning came 4 lines behind the start of the task, which came one behind the header.
    assert (first.at_ms, first.model) == (START_MS + 4_000, MODEL)


def test_a_uuid_names_a_turn_everywhere(log):
    log.task().answer().usage().done()
    assert list(read(log).turns) == [log.turn_id]


def test_usage_told_again_is_no_request(log):
    log.task().calls("c1").usage()
    log.counted({"input_tokens": 1_000, "output_tokens": 90, "total_tokens": 1_090})
    log.event("token_count", info=None)
    log.counted({"input_tokens": 1_000, "output_tokens": 90, "total_tokens": 1_090})
    log.answer().usage().done()
    (turn,) = read(log).turns.values()
    assert turn == ("main", "ended", "task_complete", 2, 1)


def test_every_kind_of_call_counts_once(log):
    log.task()
    log.item("custom_tool_call", name="exec", call_id="c1")
    log.item("custom_tool_call", name="exec", call_id="c1")
    log.item("web_search_call", id="ws1")
    log.item("local_shell_call", call_id="c2").item("tool_search_call", call_id="c3")
    log.item("web_search_call").usage().done()
    told = read(log)
    (request,) = told.requests.values()
    assert request.tool_calls == (
        ("c1", "exec"),
        ("ws1", "web_search"),
        ("c2", "local_shell"),
        ("c3", "tool_search"),
    )
    assert request.unnamed_tool_calls == 1
    (turn,) = told.turns.values()
    assert turn[-1] == 5


def test_steering_and_texts_of_the_environment_are_no_turns(log):
    log.task().item("message", role="user").item("message", role="developer").calls("c1").usage()
    log.event("user_message").item("message", role="user").answer().usage().done()
    assert len(read(log).turns) == 1


def test_what_causes_no_request_is_no_turn(log):
    log.task().event("turn_aborted", turn_id=log.turn_id, reason="interrupted")
    assert read(log).events == []


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (lambda log: log, ("open", "in_flight")),
        (lambda log: log.done(), ("ended", "task_complete")),
        (lambda log: log.event("turn_aborted", reason="interrupted"), ("cut", "interrupted")),
        (lambda log: log.event("turn_aborted"), ("cut", "interrupted")),
        (lambda log: log.event("turn_aborted", reason="replaced"), ("cut", "replaced")),
        (lambda log: log.event("error").done(last_agent_message=None), ("cut", "api_error")),
        (lambda log: log.event("error").done(last_agent_message="x"), ("ended", "task_complete")),
        (lambda log: log.event("stream_error").done(), ("ended", "task_complete")),
    ],
)
def test_how_a_turn_ends(log, end, expected):
    end(log.task("t1").calls("c1").usage())
    (turn,) = read(log).turns.values()
    assert turn == ("main", *expected, 1, 1)


def test_a_task_that_never_ended_is_cut_by_the_next(log):
    log.task("t1").calls("c1").usage().meta().task("t2").answer().usage().done()
    assert [turn[1:3] for turn in read(log).turns.values()] == [
        ("cut", "superseded"),
        ("ended", "task_complete"),
    ]


def test_a_request_without_usage_yet_counts_its_calls_only(log):
    log.task().calls("c1").usage().calls("c2", "c3")
    (turn,) = read(log).turns.values()
    assert turn == ("main", "open", "in_flight", 1, 3)


def test_turns_that_were_rolled_back_have_been_run_all_the_same(log):
    log.task("t1").calls("c1").usage().answer().usage().done()
    log.event("thread_rolled_back", num_turns=1)
    log.task("t2").answer().usage().done()
    assert [turn[1:] for turn in read(log).turns.values()] == [
        ("ended", "task_complete", 2, 1),
        ("ended", "task_complete", 1, 0),
    ]


def test_a_compaction_in_mid_turn(log):
    log.task("t1").calls("c1", "c2").usage(230_000, 229_000, 500, 0)
    log.compacted(after=14_096, window_id="w1")
    log.calls("c3").usage(19_748, 9_984, 159, 13).answer().usage(20_000, 19_000).done()
    told = read(log)
    assert list(told.compactions.values()) == [
        CompactionMade(
            compaction_id="w1",
            session_id=log.session,
            turn_id=f"{log.session}/t1",
            at_ms=START_MS + 9_000,
            trigger="auto",
            strategy="summary",
            context_before=230_500,
            context_after=19_748,
            calls_before=2,
            requests_before=1,
        )
    ]
    (turn,) = told.turns.values()
    assert turn == ("main", "ended", "task_complete", 3, 3)


def test_a_task_that_is_a_compaction_is_no_turn_and_somebody_asked_for_it(log):
    log.task("t1").answer().usage(50_000, 0, 100, 0).done()
    log.task("t2", prompt=False).compacted(window_id="w1").done()
    log.task("t3").answer().usage(9_000, 0, 100, 0).done()
    told = read(log)
    made = told.compactions["w1"]
    assert (made.trigger, made.turn_id, made.calls_before) == ("manual", None, 0)
    assert (made.context_before, made.context_after) == (50_100, 9_000)
    assert list(told.turns) == [f"{log.session}/t1", f"{log.session}/t3"]


def test_a_compaction_before_the_first_request_is_of_the_turn(log):
    log.task("t1").answer().usage(50_000, 0, 100, 0).done()
    log.task("t2", prompt=False).compacted(window_id="w1").event("user_message")
    assert read(log).compactions == {}  # it may be the whole task, and is told once that is known
    log.answer().usage(9_000, 0, 100, 0).done()
    made = read(log).compactions["w1"]
    assert (made.trigger, made.turn_id) == ("auto", f"{log.session}/t2")
    assert (made.calls_before, made.requests_before) == (0, 0)


def test_a_compaction_without_a_window_is_known_by_its_time(log):
    log.task("t1").calls("c1").usage().compacted()
    (key,) = read(log).compactions
    assert key == f"{log.session}/compacted-2026-07-01T12:00:07.000Z"


@pytest.mark.parametrize(
    ("source", "role"),
    [
        ({"subagent": "review"}, "review"),
        ({"subagent": {"thread_spawn": {"agent_role": "explorer", "depth": 1}}}, "explorer"),
        ({"subagent": {"thread_spawn": {"agent_role": None}}}, "default"),
        ({"subagent": {"other": "guardian"}}, "guardian"),
    ],
)
def test_the_role_of_a_sub_agent(source, role):
    own = uuid7(START_MS, 7)
    log = Rollout(own).meta(source=source, session_id="parent").task("t1").answer().usage().done()
    (started,) = read(log).started.values()
    assert (started.role, started.session_id) == (role, "parent")
    assert started.thread_id == f"parent/agent-{own}"


def test_a_sub_agent_finds_its_parent_in_its_source():
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "p", "agent_role": "worker"}}}
    log = Rollout().meta(source=source).task("t1").answer().usage().done()
    (started,) = read(log).started.values()
    assert started.session_id == "p"


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("collab_agent_spawn_end", {"new_thread_id": "a1", "new_agent_role": "explorer"}),
        ("sub_agent_activity", {"agent_thread_id": "a1", "kind": "started"}),
    ],
)
def test_a_parent_tells_of_its_sub_agents(log, kind, payload):
    log.task("t1").calls("c1", name="spawn_agent").event(kind, **payload).usage()
    log.event("sub_agent_activity", agent_thread_id="a1", kind="interacted")
    (told,) = read(log).agents
    assert (told.agent_id, told.session_id) == ("a1", log.session)
    assert told.role == payload.get("new_agent_role")
    assert told.parent_turn_id == f"{log.session}/t1"


def forked(parent, **meta):
    """A fork: its own header, the parent's lines, and a total that goes on from the parent's."""
    fork = Rollout(uuid7(START_MS + 500_000, 1), seconds=500, total=parent.total)
    fork.meta(**meta)
    for line in parent.lines:
        fork.line(line["type"], line["payload"])
    return fork


@pytest.mark.parametrize("cut", [None, -1, -3])
def test_the_copied_history_of_a_fork_is_not_told_again(log, cut):
    log.task().calls("c1").usage().compacted(window_id="w1").calls("c2").usage()
    log.done().task().calls("c3").usage().answer().usage().done()
    log.lines = log.lines[:cut]
    spawn = {"thread_spawn": {"parent_thread_id": log.session, "agent_role": "worker"}}
    fork = forked(log, source={"subagent": spawn})
    fork.event("token_count", info=None)
    fork.task(uuid7(START_MS + 600_000)).calls("c4").usage(9_000, 0, 10, 0).done()
    told = read(fork)
    assert told.turns == {fork.turn_id: ("worker", "ended", "task_complete", 1, 1)}
    assert told.compactions == {}


def test_copied_turns_of_small_numbers_are_known_by_their_time(log):
    log.event("task_started", turn_id="3", started_at=START_MS // 1000).calls("c1").usage().done()
    fork = forked(log)
    begun_s = START_MS // 1000 + 600
    fork.event("task_started", turn_id="4", started_at=begun_s).answer().usage().done()
    assert list(read(fork).turns) == [f"{fork.session}/4"]


def test_copied_items_without_their_tasks_are_not_told(log):
    log.task().calls("c1").usage().done()
    log.lines = [line for line in log.lines if line["type"] in ("session_meta", "response_item")]
    fork = forked(log).task(uuid7(START_MS + 600_000)).answer().usage().done()
    assert list(read(fork).turns) == [fork.turn_id]


def test_a_log_that_begins_inside_a_turn():
    log = Rollout("s")
    told = {"turn_id": "t9"}
    log.item("reasoning", internal_chat_message_metadata_passthrough=told).calls("c1").usage()
    (started,) = read(log).started.values()
    assert (started.turn_id, started.entry_calls) == ("rollout-1/t9", None)


def test_turns_of_versions_without_tasks(log):
    log.event("user_message").item("reasoning").calls("c1").usage().answer().usage()
    log.event("user_message").calls("c2").usage()
    log.event("user_message").item("message", role="assistant").usage()
    assert [turn[1:] for turn in read(log).turns.values()] == [
        ("ended", "final_text", 2, 1),
        ("cut", "superseded", 1, 1),
        ("ended", "final_text", 1, 0),
    ]


def test_roles_by_project(log):
    log.task("t1").answer().usage().done()
    (turn,) = read(log, role_by_project=True).turns.values()
    assert turn[0] == "shop/main"


def test_a_line_written_twice_counts_once(log):
    log.task().calls("c1").usage().compacted(window_id="w1").calls("c2").usage().answer().usage()
    twice = [line for line in log.done().lines for _ in range(2)]
    assert read(twice).turns == read(log).turns
    assert read(twice).requests == read(log).requests


def test_unknown_types_are_counted(log):
    log.line("not-yet-invented", {}).task().answer().usage().done()
    told, reader, _ = read_on(log)
    assert reader.unknown_types == {"not-yet-invented": 1}
    assert len(told.turns) == 1


def test_a_running_total_may_be_larger_than_any_request(log):
    log.total = 5_000_000_000
    log.task().answer().usage().done()
    assert len(read(log).requests) == 1


def whole_rollout():
    log = Rollout().meta().task().item("reasoning").calls("c1", "c2").usage()
    log.event("sub_agent_activity", agent_thread_id="a1", kind="started")
    log.compacted(window_id="w1").calls("c3").usage(20_000, 9_000).answer().usage().done()
    log.task(prompt=False).compacted(window_id="w2").done().meta()
    log.task(prompt=False).compacted(window_id="w3").event("user_message").calls("c4").usage()
    log.event("turn_aborted", reason="interrupted").task().calls("c5")
    return log.lines


WHOLE = whole_rollout()


@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_a_cut_between_any_two_lines_changes_nothing(cut):
    whole, _, stood = read_on(WHOLE)
    first, _, states = read_on(WHOLE[:cut])
    then, _, stands = read_on(WHOLE[cut:], saved=json.loads(json.dumps(states)))
    for name in ("started", "reached", "requests", "compactions"):
        assert getattr(first, name) | getattr(then, name) == getattr(whole, name)
    assert [*first.agents, *then.agents] == whole.agents
    assert stands == stood
