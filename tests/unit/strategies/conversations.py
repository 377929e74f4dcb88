"""Random conversations of every format, and a neutral plan that they are written from."""

from types import SimpleNamespace

from hypothesis import strategies as st

WORDS = st.text(alphabet="abcdefgh \n", min_size=1, max_size=40).map(lambda text: f"x{text}")
TOOLS = st.sampled_from(["read_file", "bash", "search"])
#: How the last turn stands: answered, between two requests, or with calls still open.
ENDS = ("answer", "results", "open", "partly")
FORMATS = ("anthropic", "openai_chat", "openai_responses", "langchain", "claude_code")


class LangChainLike(SimpleNamespace):
    """What strategies use of LangChain's messages; the integration tests use the real ones."""

    def model_copy(self, update):
        return LangChainLike(**(vars(self) | update))


@st.composite
def plans(draw, *, most_turns=5, answered=False):
    """Draw turns: what the user says, then rounds of parallel calls, then an answer or nothing."""
    turns = []
    for _ in range(draw(st.integers(1, most_turns))):
        rounds = []
        for _ in range(draw(st.integers(0, 4))):
            calls = [
                (draw(TOOLS), draw(WORDS), draw(WORDS) * draw(st.sampled_from([1, 1, 5, 120])))
                for _ in range(draw(st.integers(1, 3)))
            ]
            rounds.append((draw(st.booleans()), draw(st.booleans()), calls))
        turns.append((draw(WORDS), draw(st.booleans()), rounds, draw(WORDS)))
    return SimpleNamespace(
        system=draw(st.booleans()),
        turns=turns,
        end="answer" if answered else draw(st.sampled_from(ENDS)),
    )


def written(plan, name, *, asks=False):
    """Write a plan in a format; `asks` ends it with an open call of the tool compact."""
    made = WRITERS[name]()
    if plan.system:
        made.system("be good")
    number = 0
    for index, (prompt, with_image, rounds, answer) in enumerate(plan.turns):
        last = index == len(plan.turns) - 1 and not asks
        made.prompt(prompt, with_image)
        for place, (thinks, split, calls) in enumerate(rounds):
            named = [(f"c{number + k}", *call) for k, call in enumerate(calls)]
            number += len(calls)
            made.calls(named, thinks)
            final = last and place == len(rounds) - 1
            if final and plan.end == "open":
                return made.messages
            if final and plan.end == "partly":
                made.results(named[:-1], split)
                return made.messages
            made.results(named, split)
            if final and plan.end == "results":
                return made.messages
        made.answer(answer)
    if asks:
        made.prompt("go on", False)
        made.calls([(f"c{number}", "compact", "the parser", "")], False)
    return made.messages


class Anthropic:
    def __init__(self):
        self.messages = []

    def add(self, role, content):
        self.messages.append({"role": role, "content": content})

    def system(self, text):
        """Anthropic's system prompt is no message."""

    def prompt(self, text, with_image):
        source = {"type": "base64", "media_type": "image/png", "data": "aGk=" * 10}
        block = {"type": "image", "source": source}
        self.add("user", [{"type": "text", "text": text}, block] if with_image else text)

    def calls(self, named, thinks):
        thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
        blocks = [
            {"type": "tool_use", "id": i, "name": tool, "input": {"path": argument}}
            for i, tool, argument, _ in named
        ]
        self.add("assistant", [thinking, *blocks] if thinks else blocks)

    def results(self, named, split):
        blocks = [
            {"type": "tool_result", "tool_use_id": i, "content": text} for i, _, _, text in named
        ]
        if split:
            for block in blocks:
                self.add("user", [block])
        elif blocks:
            self.add("user", blocks)

    def answer(self, text):
        self.add("assistant", [{"type": "text", "text": text}])


class ClaudeCode(Anthropic):
    number = 0

    def add(self, role, content):
        ClaudeCode.number += 1
        named = {"id": f"msg{ClaudeCode.number}"} if role == "assistant" else {}
        pieces = [[block] for block in content] if role == "assistant" else [content]
        for piece in pieces:
            parent = self.messages[-1]["uuid"] if self.messages else None
            self.messages.append(
                {
                    "type": role,
                    "uuid": f"u{len(self.messages)}",
                    "parentUuid": parent,
                    "sessionId": "s",
                    "message": {"role": role, "content": piece, **named},
                }
            )


class Chat:
    def __init__(self):
        self.messages = []

    def add(self, role, content, **more):
        self.messages.append({"role": role, "content": content, **more})

    def system(self, text):
        self.add("system", text)

    def prompt(self, text, with_image):
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
        self.add("user", [{"type": "text", "text": text}, image] if with_image else text)

    def calls(self, named, thinks):
        calls = [
            {
                "id": i,
                "type": "function",
                "function": {"name": tool, "arguments": f'"{argument!r}"'},
            }
            for i, tool, argument, _ in named
        ]
        self.add("assistant", "hm" if thinks else None, tool_calls=calls)

    def results(self, named, split):
        for i, _, _, text in named:
            self.add("tool", [{"type": "text", "text": text}] if split else text, tool_call_id=i)

    def answer(self, text):
        self.add("assistant", text)


LANGCHAIN_TYPES = {"system": "system", "user": "human", "assistant": "ai", "tool": "tool"}


class LangChain(Chat):
    def add(self, role, content, **more):
        more.setdefault("tool_calls", [])
        more["tool_calls"] = [
            {
                "id": c["id"],
                "name": c["function"]["name"],
                "args": {"a": c["function"]["arguments"]},
            }
            for c in more["tool_calls"]
        ]
        self.messages.append(
            LangChainLike(
                type=LANGCHAIN_TYPES[role],
                content=content or "",
                additional_kwargs={},
                id=f"m{len(self.messages)}",
                **more,
            )
        )


class Responses:
    def __init__(self):
        self.messages = []

    def system(self, text):
        self.messages.append({"role": "developer", "content": text})

    def prompt(self, text, with_image):
        image = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="}
        content = [{"type": "input_text", "text": text}, *([image] if with_image else [])]
        self.messages.append({"type": "message", "role": "user", "content": content})

    def calls(self, named, thinks):
        if thinks:
            self.messages.append({"type": "reasoning", "id": "r", "summary": []})
        self.messages += [
            {"type": "function_call", "call_id": i, "name": tool, "arguments": f'{{"a": "{i}"}}'}
            for i, tool, _, _ in named
        ]

    def results(self, named, split):
        self.messages += [
            {"type": "function_call_output", "call_id": i, "output": text}
            for i, _, _, text in named
        ]

    def answer(self, text):
        content = [{"type": "output_text", "text": text, "annotations": []}]
        named = {"id": f"m{len(self.messages)}", "status": "completed"}
        self.messages.append({"type": "message", "role": "assistant", "content": content, **named})


WRITERS = {
    "anthropic": Anthropic,
    "openai_chat": Chat,
    "openai_responses": Responses,
    "langchain": LangChain,
    "claude_code": ClaudeCode,
}
