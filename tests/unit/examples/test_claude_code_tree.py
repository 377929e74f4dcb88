"""The manifest is held against a count made here, from the raw lines alone."""

import json
from collections import Counter
from dataclasses import dataclass, field

import pytest

from examples.claude_code_tree import write_tree, write_tree_of_size
from examples.manifest import Tokens

NO_PROMPT = ("<local-command", "<command-name>", "[Request interrupted")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    return root, write_tree(root)


def lines_of(path):
    # Not splitlines: U+2028 inside a string is no end of line.
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def files(root):
    return sorted(root.glob("projects/**/*.jsonl"))


def main_files(root):
    return sorted(root.glob("projects/*/*.jsonl"))


def agent_files(root):
    found = root.glob("projects/*/*/subagents/agent-*.jsonl")
    return sorted(path for path in found if "acompact" not in path.name)


def text_of(line):
    content = line["message"]["content"]
    return content if isinstance(content, str) else content[0].get("text")


def is_prompt(line):
    if line["type"] != "user" or line.get("isMeta") or line.get("isCompactSummary"):
        return False
    text = text_of(line)
    return text is not None and not text.startswith(NO_PROMPT)


def is_answer(line):
    return line["type"] == "assistant" and line["message"]["model"] != "<synthetic>"


@dataclass
class Counted:
    tool_ids: set = field(default_factory=set)
    usage_of_message: dict = field(default_factory=dict)
    compactions: int = 0

    @property
    def tokens(self):
        return sum(
            (
                Tokens(
                    usage["input_tokens"],
                    usage["cache_read_input_tokens"],
                    usage["cache_creation_input_tokens"],
                    usage["output_tokens"],
                )
                for usage in self.usage_of_message.values()
            ),
            Tokens(),
        )


def counted_turns(path):
    turns = []
    between = Counted()
    for line in lines_of(path):
        if is_prompt(line):
            turns.append(Counted())
        turn = turns[-1] if turns else between
        if is_answer(line):
            message = line["message"]
            turn.usage_of_message[message["id"]] = message["usage"]
            turn.tool_ids |= {b["id"] for b in message["content"] if b["type"] == "tool_use"}
    assert not between.usage_of_message
    return turns


def figures(turn):
    return len(turn.tool_ids), len(turn.usage_of_message), turn.tokens


def truth_figures(turn):
    return turn.tool_calls, turn.requests, turn.tokens


def test_every_line_is_a_json_object_and_is_counted(tree):
    root, manifest = tree
    lines = [line for path in files(root) for line in lines_of(path)]
    assert all(isinstance(line, dict) for line in lines)
    assert manifest.lines == len(lines)
    assert manifest.files == len(files(root))
    assert manifest.sessions == len(main_files(root)) == 12
    assert manifest.size_bytes == sum(path.stat().st_size for path in files(root)) < 2_000_000


def test_main_turns_are_what_a_count_of_the_raw_lines_finds(tree):
    root, manifest = tree
    for path in main_files(root):
        truth = [t for t in manifest.turns if t.session_id == path.stem and t.agent_id is None]
        assert [truth_figures(t) for t in truth] == [figures(t) for t in counted_turns(path)]
        assert {t.role for t in truth} == {"main"}


def test_sub_agents_are_what_a_count_of_their_files_finds(tree):
    root, manifest = tree
    truth = {t.agent_id: truth_figures(t) for t in manifest.turns if t.agent_id}
    found = {}
    for path in agent_files(root):
        (turn,) = counted_turns(path)
        found[path.stem.removeprefix("agent-")] = figures(turn)
    assert found == truth
    assert len(truth) >= 4


def test_a_sub_agent_s_role_is_the_type_its_parent_asked_for(tree):
    root, manifest = tree
    asked, agent_of_call = {}, {}
    for line in (line for path in main_files(root) for line in lines_of(path)):
        if is_answer(line):
            for block in line["message"]["content"]:
                if block["type"] == "tool_use" and block["name"] in {"Task", "Agent"}:
                    asked[block["id"]] = block["input"].get("subagent_type", "general-purpose")
        detail = line.get("toolUseResult")
        if isinstance(detail, dict) and "agentId" in detail:
            agent_of_call[line["message"]["content"][0]["tool_use_id"]] = detail["agentId"]
    found = {agent: asked[call] for call, agent in agent_of_call.items()}
    assert found == {t.agent_id: t.role for t in manifest.turns if t.agent_id}


def test_cut_turns_are_those_with_an_interruption_a_failure_or_an_open_end(tree):
    root, manifest = tree
    statuses = Counter(turn.status for turn in manifest.turns)
    found = Counter()
    for path in main_files(root):
        lines = lines_of(path)
        found["interrupted"] += sum(
            line["type"] == "user" and (text_of(line) or "").startswith("[Request interrupted")
            for line in lines
        )
        found["failed"] += sum(bool(line.get("isApiErrorMessage")) for line in lines)
        last = lines[-1]
        found["in_flight"] += is_answer(last) and last["message"]["content"][0]["type"] == (
            "tool_use"
        )
    assert {k: statuses[k] for k in found} == dict(found)
    assert statuses["ended"] == len(manifest.turns) - found.total()
    assert sum(turn.ended for turn in manifest.turns) == statuses["ended"]
    assert min(found.values()) >= 1


def test_compactions_carry_the_contexts_around_their_boundary(tree):
    root, manifest = tree
    found = []
    for path in main_files(root):
        session, context, waiting = [], 0, None
        for line in lines_of(path):
            if is_answer(line):
                usage = line["message"]["usage"]
                context = (
                    usage["input_tokens"]
                    + usage["cache_read_input_tokens"]
                    + usage["cache_creation_input_tokens"]
                )
                if waiting:
                    session.append((*waiting, context))
                    waiting = None
            if line.get("subtype") == "compact_boundary":
                detail = line["compactMetadata"]
                waiting = (path.stem, detail["trigger"], detail["preTokens"], context)
        found += session
    truth = [
        (c.session_id, c.trigger, c.pre_tokens, c.context_before, c.context_after)
        for c in manifest.compactions
    ]
    assert sorted(truth) == sorted(found)
    assert {c.trigger for c in manifest.compactions} == {"auto", "manual"}
    assert all(c.context_after < c.context_before for c in manifest.compactions)
    assert all(
        155_000 < c.pre_tokens < 200_000 for c in manifest.compactions if c.trigger == "auto"
    )


def test_each_compaction_has_the_file_of_its_summary(tree):
    root, manifest = tree
    found = []
    for path in root.glob("projects/*/*/subagents/agent-acompact-*.jsonl"):
        (line,) = [line for line in lines_of(path) if is_answer(line)]
        found.append(line["message"]["usage"]["output_tokens"])
    assert sorted(found) == sorted(c.summary.output for c in manifest.compactions)


def test_compactions_inside_turns_are_counted_in_their_turn(tree):
    _, manifest = tree
    inside = Counter((c.session_id, c.turn) for c in manifest.compactions if c.turn is not None)
    own = [t for t in manifest.turns if t.agent_id is None]
    position = Counter()
    for turn in own:
        assert turn.compactions == inside[turn.session_id, position[turn.session_id]]
        position[turn.session_id] += 1
    assert sum(t.compactions for t in own) == inside.total() >= 1


def test_a_request_reads_what_the_one_before_it_left_in_the_cache(tree):
    root, _ = tree
    warm = cold = 0
    for path in [*main_files(root), *agent_files(root)]:
        left, seen = None, set()
        for line in lines_of(path):
            if line.get("subtype") == "compact_boundary":
                left = None
            if not is_answer(line) or line["message"]["id"] in seen:
                continue
            seen.add(line["message"]["id"])
            usage = line["message"]["usage"]
            read, write = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
            if left is not None:
                assert read in {left, 0}
                warm += read == left
                cold += read == 0
            left = read + write
            assert usage["cache_creation"]["ephemeral_5m_input_tokens"] == write
    assert warm > 10 * cold > 0


def test_lines_of_one_message_agree_on_input_and_the_last_has_the_output(tree):
    root, _ = tree
    usages = {}
    for path in files(root):
        for line in lines_of(path):
            if is_answer(line):
                usages.setdefault(line["message"]["id"], []).append(line["message"]["usage"])
    assert sum(len(of_one) > 1 for of_one in usages.values()) > 100
    for of_one in usages.values():
        outputs = [usage["output_tokens"] for usage in of_one]
        assert outputs[-1] == max(outputs)
        assert len({usage["cache_read_input_tokens"] for usage in of_one}) == 1


def test_every_kind_of_dirt_is_there(tree):
    root, _ = tree
    seen, out_of_order, most_parallel = Counter(), 0, 0
    for path in main_files(root):
        issued, calls_of = set(), Counter()
        for line in lines_of(path):
            seen[line["type"]] += 1
            seen[line.get("subtype")] += 1
            seen[line.get("data", {}).get("type")] += 1
            seen[line.get("attachment", {}).get("type")] += 1
            seen["nested usage"] += "usage" in (
                line.get("data", {}).get("message", {}).get("message", {})
            )
            seen["summary"] += bool(line.get("isCompactSummary"))
            if line["type"] == "assistant":
                seen["synthetic"] += line["message"]["model"] == "<synthetic>"
                block = line["message"]["content"][0]
                seen[block["type"]] += 1
                if block["type"] == "tool_use":
                    issued.add(block["id"])
                    calls_of[line["message"]["id"]] += 1
            elif line["type"] == "user" and "tool_use_id" in line["message"]["content"][0]:
                out_of_order += line["message"]["content"][0]["tool_use_id"] not in issued
            elif line["type"] == "user":
                seen["notification"] += (text_of(line) or "").startswith("<task-notification>")
        most_parallel = max(most_parallel, *calls_of.values())
    assert out_of_order >= 1
    assert most_parallel >= 3
    for kind in (
        "thinking", "text", "tool_use", "hook_progress", "agent_progress", "nested usage",
        "compact_boundary", "summary", "api_error", "synthetic", "queued_command",
        "queue-operation", "turn_duration", "stop_hook_summary", "file-history-snapshot",
        "not-yet-invented", "notification",
    ):  # fmt: skip
        assert seen[kind] >= 1, kind


def test_times_do_not_run_backwards_and_ids_are_unique(tree):
    root, _ = tree
    ids = Counter()
    for path in files(root):
        lines = [line for line in lines_of(path) if "uuid" in line]
        times = [line["timestamp"] for line in lines]
        assert times == sorted(times)
        ids.update(line["uuid"] for line in lines)
    assert set(ids.values()) == {1}


def test_the_same_seed_gives_the_same_bytes(tree, tmp_path):
    root, manifest = tree
    assert write_tree(tmp_path) == manifest
    for path in files(root):
        assert (tmp_path / path.relative_to(root)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("sessions", [1, 5])
def test_a_tree_has_the_sessions_asked_for(tmp_path, sessions):
    manifest = write_tree(tmp_path, sessions=sessions, seed=3, body_chars=20)
    assert manifest.sessions == sessions == len(main_files(tmp_path))


def test_a_large_tree_is_of_its_size_and_of_real_density(tmp_path):
    manifest = write_tree_of_size(tmp_path, 6)
    size = sum(path.stat().st_size for path in files(tmp_path))
    assert manifest.size_bytes == size
    assert 6e6 <= size < 11e6
    assert 1_900 < size / manifest.lines < 2_500
    assert 2.8 < manifest.lines / manifest.requests < 4.0
    largest = max(path.stat().st_size for path in main_files(tmp_path))
    assert largest < 4.5e6
    found = sum(len(t.usage_of_message) for p in main_files(tmp_path) for t in counted_turns(p))
    assert found == sum(t.requests for t in manifest.turns if t.agent_id is None)
