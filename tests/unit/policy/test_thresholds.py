import json
import math

import pytest

from compactuary.errors import InputError
from policy.rules.setting import Setting
from policy.thresholds import Thresholds

SETTING = Setting(0.1, 1.25, 5.0, 34_000.0, 18_000.0, 6_000.0, 500.0, 1_000.0, 1_000.0)
THRESHOLDS = Thresholds(
    "idle",
    (90_000.5, None, 70_000 + 1 / 3),
    at_turn_end=60_000.0,
    at_resume=80_000.0,
    at_idle=((60.0, 50_000.0), (285.0, 45_000.0), (300.0, None)),
    ask_again_seconds=285.0,
    setting=SETTING,
)


@pytest.mark.parametrize(
    ("moment", "requests", "idle_seconds", "expected"),
    [
        ("call", 0, None, 90_000.5),
        ("call", 1, None, None),
        ("call", 2, None, 70_000 + 1 / 3),
        ("call", 10**9, None, 70_000 + 1 / 3),
        ("turn_end", 7, None, 60_000.0),
        ("resume", 7, None, 80_000.0),
        ("idle", 7, 0.0, None),
        ("idle", 7, 60.0, 50_000.0),
        ("idle", 7, 284.9, 50_000.0),
        ("idle", 7, 285.0, 45_000.0),
        ("idle", 7, 300.0, None),
        ("idle", 7, 1e9, None),
        ("idle", 7, None, 45_000.0),
    ],
)
def test_the_look_up(moment, requests, idle_seconds, expected):
    assert THRESHOLDS.at(moment, requests, idle_seconds) == expected


def test_without_idle_thresholds_idle_is_never():
    assert Thresholds("never", (None,)).at("idle", 0, 100.0) is None
    assert Thresholds("never", (None,)).at("idle") is None


def test_the_payload_is_exact():
    payload = json.loads(json.dumps(THRESHOLDS.to_payload()))
    assert Thresholds.from_payload(payload) == THRESHOLDS
    bare = Thresholds("never", (None,))
    assert Thresholds.from_payload(json.loads(json.dumps(bare.to_payload()))) == bare


@pytest.mark.parametrize(
    "damage",
    [{"at_call": []}, {"at_call": ["x"]}, {"at_call": None}, {"at_idle": [[1]]}, {"setting": {}}],
)
def test_a_damaged_payload_is_refused(damage):
    with pytest.raises(InputError):
        Thresholds.from_payload(THRESHOLDS.to_payload() | damage)


@pytest.mark.parametrize("missing", THRESHOLDS.to_payload())
def test_a_payload_without_a_key_is_refused(missing):
    payload = THRESHOLDS.to_payload()
    del payload[missing]
    with pytest.raises(InputError):
        Thresholds.from_payload(payload)


@pytest.mark.parametrize(
    "changes",
    [
        {"at_call": ()},
        {"at_call": (math.nan,)},
        {"at_turn_end": -1.0},
        {"at_resume": math.inf},
        {"ask_again_seconds": math.nan},
        {"at_idle": ((60.0, 1.0), (60.0, 2.0))},
        {"at_idle": ((math.nan, 1.0),)},
    ],
)
def test_impossible_thresholds_are_refused(changes):
    with pytest.raises(InputError):
        Thresholds(**({"rule": "r", "at_call": (None,)} | changes))


def test_an_unknown_moment_and_a_negative_age_are_refused():
    with pytest.raises(InputError, match="moment"):
        THRESHOLDS.at("lunch")
    with pytest.raises(InputError, match="requests"):
        THRESHOLDS.at("call", -1)
