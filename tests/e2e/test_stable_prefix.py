"""A long session through Anthropic's own SDK: what keeps the prefix's bytes keeps its cache.

The server bills a prefix cache by content and refuses what breaks the pairing of calls and results.
"""

from itertools import pairwise

import anthropic
import pytest

from ledger.usage import usage_from
from strategies.conversation import MEMORY_MARK
from strategies.registry import strategy
from strategies.situation import Situation
from tests.provider.anthropic_messages import Messages
from tests.provider.http_server import served

STEPS = 48
CACHED = {"cache_control": {"type": "ephemeral"}}
TOOLS = [
    {
        "name": name,
        "description": f"Use {name} on a file of the project. " * 12,
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    for name in ("read_file", "run_tests")
]
SYSTEM = "You mend a parser. Read before you write; run the tests after each change. " * 60
LINE = "def parse(tokens): return [token for token in tokens if token.kind != {0}]\n"


def model(body):
    """Answer as an agent that reads a file at each step, and sometimes two at once."""
    step = sum(message["role"] == "assistant" for message in body["messages"])
    names = ["read_file", "run_tests"] if step % 7 == 3 else ["read_file"]
    calls = [
        {
            "type": "tool_use",
            "id": f"toolu_{step}_{name}",
            "name": name,
            "input": {"path": f"src/part_{step}.py"},
        }
        for name in names
    ]
    return [{"type": "text", "text": f"Step {step}: the next file."}, *calls]


def results_of(response, step):
    """Return what the tools of a response say: 1,200 lines of code now and then, else a few."""
    return {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": block.id,
                "content": LINE.format(step) * (90 if step % 2 else 6),
            }
            for block in response.content
            if block.type == "tool_use"
        ],
    }


def marked(messages, *places):
    """Return messages with breakpoints at the last block, as agents set it, and at some others."""
    made = list(messages)
    for place in {len(made) - 1, *places}:
        content = made[place]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        made[place] = {**made[place], "content": [*blocks[:-1], {**blocks[-1], **CACHED}]}
    return made


def is_memory(message):
    return str(message["content"]).startswith(MEMORY_MARK)


def digests_end(messages):
    """Return where the last digest is: what the next compaction leaves as it is ends there."""
    return [k - 1 for k, message in enumerate(messages) if is_memory(message)]


def run(address, account, *, compact, memory_in_system=False, mark_digests=False):
    """Run the session; return step, whether compacted, usage and prefix tokens of each step."""
    http = anthropic.DefaultHttpxClient(trust_env=False)
    client = anthropic.Anthropic(api_key="none", base_url=address, http_client=http, max_retries=0)
    messages, system, steps = [{"role": "user", "content": "Mend the parser."}], SYSTEM, []
    for step in range(STEPS):
        result = compact.compact(messages, Situation())
        messages = list(result.messages)
        if result.changed and memory_in_system:
            memory = next(filter(is_memory, messages))
            messages.remove(memory)
            system = f"{SYSTEM}\n{memory['content']}"
        response = client.messages.create(
            model="claude-opus-4-8",
            max_tokens=1000,
            system=[{"type": "text", "text": system, **CACHED}],
            tools=TOOLS,
            messages=marked(messages, *(digests_end(messages) if mark_digests else ())),
        )
        prefix = account.log[-1][2]
        steps.append((step, result.changed, response.usage, prefix))
        answer = {"role": "assistant", "content": [b.to_dict() for b in response.content]}
        messages += [answer, results_of(response, step)]
    client.close()
    return steps


@pytest.fixture
def account():
    return Messages(model)


def test_every_step_after_a_compaction_reads_the_prefix_from_the_cache(account):
    with served(account) as address:
        digest = strategy("tail_digest", keep_recent=8, bulky_tokens=400)
        steps = run(address, account, compact=digest)
    assert len(steps) == STEPS
    compacted = [step for step, changed, _, _ in steps if changed]
    assert len(compacted) >= 10
    sizes = {prefix for _, _, _, prefix in steps}
    (prefix,) = sizes
    for step, _, usage, _ in steps[1:]:
        assert usage.cache_read_input_tokens >= prefix, step
    # All requests carry the same bytes in front: system prompt, tools and the task.
    fronts = [(b["system"], b["tools"], b["messages"][0]) for b, _, _ in account.log[1:]]
    assert all(front == fronts[0] for front in fronts)
    # Where nothing was compacted, all that was sent a step before is read.
    for (_, _, before, _), (_, changed, now, _) in pairwise(steps):
        if not changed:
            assert now.cache_read_input_tokens == usage_from(before.to_dict()).context_tokens


def test_a_memory_in_the_system_prompt_loses_it(account):
    with served(account) as address:
        digest = strategy("tail_digest", keep_recent=8, bulky_tokens=400)
        steps = run(address, account, compact=digest, memory_in_system=True)
    compacted = [(usage, prefix) for _, changed, usage, prefix in steps if changed]
    assert len(compacted) >= 10
    assert all(usage.cache_read_input_tokens < prefix for usage, prefix in compacted)


def test_a_breakpoint_at_the_last_digest_keeps_all_digests_in_the_cache(account):
    """Without one, a cache with breakpoints reads the system prompt and the tools alone."""
    with served(account) as address:
        digest = strategy("tail_digest", keep_recent=8, bulky_tokens=400)
        steps = run(address, account, compact=digest, mark_digests=True)
    read = [usage.cache_read_input_tokens for _, changed, usage, _ in steps if changed]
    # Each compaction reads what the ones before it left, the working memory apart.
    assert len(read) >= 10
    assert read[1:] == sorted(set(read[1:]))
    assert read[-1] > read[1] > steps[0][3]
