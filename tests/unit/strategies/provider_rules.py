"""What providers refuse, written down apart from the code under test.

Sources: Anthropic, "How to implement tool use" and "Messages": a conversation begins with the
user, consecutive messages of one role count as one turn, every tool_use is answered by a
tool_result at the head of the next user turn and by no other, no text is empty. OpenAI, "Function
calling" and Chat Completions reference: an assistant message with tool_calls is followed by one
tool message for each, before anything else. Responses: every function_call_output follows a call
of its call_id and every call has one; a reasoning item is followed by an item of the same response.
"""

from itertools import groupby


def problems(name, messages):
    """Return what a provider would refuse; calls at the very end may still be open."""
    return {
        "anthropic": anthropic,
        "openai_chat": chat,
        "openai_responses": responses,
        "langchain": langchain,
        "claude_code": claude_code,
    }[name](list(messages))


def blocks_of(message):
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def anthropic(messages):
    said = [m for m in messages if m["role"] != "system"]
    turns = [
        (role, [block for m in group for block in blocks_of(m)])
        for role, group in groupby(said, key=lambda m: m["role"])
    ]
    if not turns:
        return []
    found = []
    first = turns[0][1]
    if turns[0][0] != "user" and not (first and first[0]["type"] == "compaction"):
        found.append("begins with the assistant")
    for number, (role, blocks) in enumerate(turns):
        if not blocks:
            found.append("empty content")
        found += ["empty text" for b in blocks if b["type"] == "text" and not b["text"]]
        calls = [b["id"] for b in blocks if b["type"] == "tool_use"]
        results = [b["tool_use_id"] for b in blocks if b["type"] == "tool_result"]
        if role == "assistant":
            if results:
                found.append("a result in a response")
            if number + 1 < len(turns):
                answered = [
                    b["tool_use_id"] for b in turns[number + 1][1] if b["type"] == "tool_result"
                ]
                # In the last turn results may still be missing: nothing is sent yet.
                waits = number + 2 == len(turns) and set(answered) < set(calls)
                if sorted(calls) != sorted(answered) and not (waits and only_results(turns[-1])):
                    found.append(f"calls {calls} answered by {answered}")
        elif results:
            before = turns[number - 1][1] if number else []
            asked = [b["id"] for b in before if b["type"] == "tool_use"]
            if not set(results) <= set(asked):
                found.append(f"results {results} of calls {asked}")
            kinds = [b["type"] == "tool_result" for b in blocks]
            if kinds != sorted(kinds, reverse=True):
                found.append("a result behind other blocks")
    return found


def only_results(turn):
    return all(block["type"] == "tool_result" for block in turn[1])


def paired(entries):
    """Check (role, calls, result) triples of formats in which results have a role of their own."""
    found, waiting = [], []
    for place, (role, calls, result) in enumerate(entries):
        if role == "tool":
            if result in waiting:
                waiting.remove(result)
            else:
                found.append(f"{place}: result {result} without its call")
        else:
            if waiting:
                found.append(f"{place}: {role} before results of {waiting}")
            waiting = list(calls)
    return found


def chat(messages):
    return paired(
        (m["role"], [c["id"] for c in m.get("tool_calls") or ()], m.get("tool_call_id"))
        for m in messages
    )


def langchain(messages):
    return paired(
        (m.type, [c["id"] for c in getattr(m, "tool_calls", ())], getattr(m, "tool_call_id", None))
        for m in messages
    )


def responses(items):
    found, calls, answered = [], {}, set()
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "function_call":
            calls[item["call_id"]] = place
        elif kind == "function_call_output":
            if item["call_id"] not in calls:
                found.append(f"{place}: output of {item['call_id']} without its call")
            answered.add(item["call_id"])
        elif kind == "reasoning":
            after = items[place + 1] if place + 1 < len(items) else None
            own = after and (
                after.get("type") == "function_call" or after.get("role") == "assistant"
            )
            if not own:
                found.append(f"{place}: reasoning without what it led to")
        elif kind == "message" and item["role"] == "user":
            open_calls = set(calls) - answered
            if open_calls:
                found.append(f"{place}: user before outputs of {open_calls}")
    return found


def claude_code(lines):
    """As Anthropic's, with the lines of a response put together and other lines left out."""
    messages, last = [], None
    for line in lines:
        if line["type"] not in ("user", "assistant"):
            continue
        inner = line["message"]
        if line["type"] == "assistant" and last == inner["id"]:
            messages[-1]["content"] += inner["content"]
        else:
            messages.append({"role": inner["role"], "content": blocks_of(inner)})
        last = inner["id"] if line["type"] == "assistant" else None
    return anthropic(messages)
