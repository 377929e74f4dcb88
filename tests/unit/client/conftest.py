"""A service of lists: answers given beforehand, and what it was asked."""

import threading
from dataclasses import dataclass, field

import pytest

from compactuary.counters import Counters
from compactuary.endpoint import Endpoint
from compactuary.http_message import Answered
from compactuary.log_once import LogOnce

#: As ``GET /thresholds/{role}`` serves them; written by hand.
DOCUMENT = {
    "role": "main",
    "model": "m",
    "rule": "renewal",
    "at_call": [None, 120_000, 90_000.5],
    "at_turn_end": 80_000,
    "at_resume": 60_000,
    "at_idle": [[10, 70_000], [240, 55_000]],
    "ask_again_seconds": 280,
    "setting": {"context_after_tokens": 50_000},
    "requests_per_call": 0.5,
    "hard_limit_tokens": 190_000,
    "versions": {"policy": "3", "thresholds": 1},
}


@dataclass
class Scripted:
    """Stands where connections stand: answers in order, then the last one again."""

    answers: list
    asked: list = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def exchange(self, request, deadline):
        with self.lock:
            self.asked.append(request)
            answer = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        return answer(request) if callable(answer) else answer

    def heads(self):
        return [request.split(b" HTTP/1.1")[0].decode() for request in self.asked]


def said(status, body=b"{}", **headers):
    return Answered(status, headers, body)


@pytest.fixture
def document():
    return {**DOCUMENT}


@pytest.fixture
def endpoint():
    return Endpoint("http", "service", 80)


@pytest.fixture
def counters():
    return Counters()


@pytest.fixture
def log():
    return LogOnce()


@pytest.fixture
def scripted():
    return Scripted


@pytest.fixture
def answered():
    return said
