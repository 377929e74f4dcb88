"""Real providers through their SDKs, against a local server that holds them to their rules.

The server answers with the simulated model, so that a report through an SDK has to come out as it
does without one.
"""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from compactuary.errors import CompactuaryError
from experiment.graph import Setting, run_report
from experiment.providers import model_of
from experiment.simulated import SimulatedModel
from policy.weights import weights_from
from tests.unit.strategies.provider_rules import problems

PRICES = weights_from({"cache_read": 0.1, "cache_write": 1.25, "output": 5})


def from_anthropic(body):
    messages = [SystemMessage(block["text"]) for block in body.get("system", ())]
    for turn in body["messages"]:
        texts = [block["text"] for block in turn["content"] if block["type"] == "text"]
        if turn["role"] == "assistant":
            calls = [
                {"name": block["name"], "args": block["input"], "id": block["id"]}
                for block in turn["content"]
                if block["type"] == "tool_use"
            ]
            messages.append(AIMessage("".join(texts), tool_calls=calls))
            continue
        messages += [
            ToolMessage(block["content"], tool_call_id=block["tool_use_id"])
            for block in turn["content"]
            if block["type"] == "tool_result"
        ]
        messages += map(HumanMessage, texts)
    return messages


def answer_anthropic(body):
    assert problems("anthropic", body["messages"]) == []
    # A framework's own summary call goes without a system prompt, and may call nothing.
    if body["tool_choice"]["type"] == "auto":
        assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    else:
        assert "system" not in body
    assert body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
    assert [tool["name"] for tool in body["tools"]] == ["search", "read", "write_section"]
    reply = SimulatedModel(0).answer(from_anthropic(body)).message
    content = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}
        for call in reply.tool_calls
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "tool_use" if reply.tool_calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 10,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 20,
            "output_tokens": 5,
        },
    }


def from_chat(body):
    kinds = {"system": SystemMessage, "user": HumanMessage}
    messages = []
    for one in body["messages"]:
        if one["role"] == "tool":
            messages.append(ToolMessage(one["content"], tool_call_id=one["tool_call_id"]))
        elif one["role"] == "assistant":
            calls = [
                {
                    "name": call["function"]["name"],
                    "args": json.loads(call["function"]["arguments"]),
                    "id": call["id"],
                }
                for call in one.get("tool_calls", ())
            ]
            messages.append(AIMessage(one["content"], tool_calls=calls))
        else:
            messages.append(kinds[one["role"]](one["content"]))
    return messages


def answer_chat(body):
    assert problems("openai_chat", body["messages"]) == []
    assert {tool["type"] for tool in body.get("tools", [{"type": "function"}])} == {"function"}
    reply = SimulatedModel(0).answer(from_chat(body)).message
    calls = [
        {
            "id": call["id"],
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
        }
        for call in reply.tool_calls
    ]
    message = {"role": "assistant", "content": reply.text or None}
    message |= {"tool_calls": calls} if calls else {}
    finish = "tool_calls" if calls else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 5,
            "total_tokens": 105,
            "prompt_tokens_details": {"cached_tokens": 60},
        },
    }


@contextmanager
def served(answer):
    """Serve one provider's way of answering; what its checks find wrong is a refusal."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            try:
                status, made = 200, answer(body)
            except AssertionError as error:
                status, made = 400, {"error": {"type": "invalid", "message": f"{error}"[:300]}}
            content = json.dumps(made).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


ANSWERS = {"anthropic": answer_anthropic, "openai": answer_chat}
#: 10 + 0.1·100 + 1.25·20 + 5·5, and 40 + 0.1·60 + 5·5.
COST = {"anthropic": 70.0, "openai": 71.0}


def point_at(monkeypatch, provider, address):
    path = {"anthropic": "", "openai": "/v1"}[provider]
    monkeypatch.setenv(f"{provider.upper()}_BASE_URL", address + path)
    monkeypatch.setenv(f"{provider.upper()}_API_KEY", "none")


@pytest.mark.parametrize("arm", ["preserving", "framework"])
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_report_comes_out_as_without_an_sdk(monkeypatch, provider, arm):
    setting = Setting(arm, 25, 15_000)
    with served(ANSWERS[provider]) as address:
        point_at(monkeypatch, provider, address)
        run = run_report(setting, model_of(provider, "some-model", 0), PRICES)
    alone = run_report(setting, SimulatedModel(0), PRICES)
    assert run.bill.summary_calls > 0
    requests = run.bill.requests + run.bill.summary_calls
    assert run.bill.cost == pytest.approx(COST[provider] * requests)
    if arm == "preserving":
        assert run.quality == alone.quality
        assert run.bill.requests == alone.bill.requests
        assert run.bill.summary_calls == alone.bill.summary_calls
    else:
        # Its summary is lost on the same things, though its size differs with the tools sent.
        assert run.quality.facts_survived < 17


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_refusal_is_one_line_that_says_whose(monkeypatch, provider):
    def refuse(body):
        raise AssertionError("no credit\nleft")

    with served(refuse) as address:
        point_at(monkeypatch, provider, address)
        model = model_of(provider, "some-model", 0)
        with pytest.raises(CompactuaryError) as refused:
            run_report(Setting("baseline", 0, 15_000), model, PRICES)
    told = str(refused.value)
    assert told.startswith(f"--provider {provider}: BadRequestError: ")
    assert "no credit" in told
    assert "\n" not in told


def test_arguments_that_are_no_json_reach_the_tool_as_none(monkeypatch):
    answers = []

    def answer(body):
        made = answer_chat(
            {**body, "messages": [m for m in body["messages"] if m not in wrong(body)]}
        )
        if not answers:
            made["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] = "{query"
        answers.append(body["messages"])
        return made

    def wrong(body):
        """Return the torn call and its answer, so that the simulated model goes on."""
        return body["messages"][2:4] if answers else []

    with served(answer) as address:
        point_at(monkeypatch, "openai", address)
        run = run_report(Setting("baseline", 0, 15_000), model_of("openai", "m", 0), PRICES)
    assert run.quality.facts_survived == 17
    assert "query" in answers[1][3]["content"]
