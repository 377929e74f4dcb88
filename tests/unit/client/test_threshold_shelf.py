import json
import time

import pytest

from compactuary.advice import Unanswered
from compactuary.stored_thresholds import Asked
from compactuary.threshold_shelf import ThresholdShelf, asked_for

PATIENCE_SECONDS = 10.0
ASKED = Asked("main", "m")


def until(holds):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.002)


@pytest.fixture
def shelf_at(endpoint, counters, log, tmp_path):
    made = []

    def make(server, *, folder=tmp_path, refresh_seconds=3600.0):
        made.append(ThresholdShelf(endpoint, server, counters, log, folder, refresh_seconds))
        return made[-1]

    yield make
    for shelf in made:
        shelf.close()


@pytest.fixture
def served(answered, document):
    return answered(200, json.dumps(document).encode(), etag='"1"')


def test_what_is_wanted_is_fetched_and_kept_for_the_next_process(
    shelf_at, scripted, served, counters
):
    server = scripted([served])
    shelf = shelf_at(server)
    assert shelf.find(ASKED) is None
    shelf.want(ASKED)
    until(lambda: shelf.find(ASKED) is not None)
    assert server.heads() == ["GET /thresholds/main?model=m"]
    until(lambda: shelf_at(scripted([served])).find(ASKED) is not None)
    assert counters.snapshot()["thresholds_fetched"] == 1


def test_a_question_s_own_words_are_asked_for(shelf_at, scripted, served):
    server = scripted([served])
    shelf = shelf_at(server, folder=None)
    shelf.want(Asked("a/b c", "m&n", (("ttl", "1h"), ("window_tokens", 5))))
    until(lambda: server.asked)
    assert server.heads() == ["GET /thresholds/a%2Fb%20c?model=m%26n&ttl=1h&window_tokens=5"]


def test_they_are_compared_by_etag(shelf_at, scripted, served, answered, counters):
    server = scripted([served, answered(304)])
    shelf = shelf_at(server, refresh_seconds=0.01)
    shelf.want(ASKED)
    until(lambda: counters.snapshot()["thresholds_confirmed"] >= 2)
    assert b"If-None-Match" not in server.asked[0]
    assert b'If-None-Match: "1"\r\n' in server.asked[1]
    assert counters.snapshot()["thresholds_fetched"] == 1
    assert time.time() - shelf.find(ASKED).confirmed_at < PATIENCE_SECONDS


def test_a_process_without_a_server_goes_by_the_disk_and_asks_by_etag(
    shelf_at, scripted, served, answered
):
    first = shelf_at(scripted([served]))
    first.want(ASKED)
    away = scripted([Unanswered("unreachable", "gone")])

    def loaded():
        second = shelf_at(away)
        return second if second.find(ASKED) else None

    until(loaded)
    second = loaded()
    second.want(ASKED)
    until(lambda: away.asked)
    assert b'If-None-Match: "1"\r\n' in away.asked[0]
    assert second.find(ASKED).thresholds.at_call == (None, 120_000, 90_000.5)


@pytest.mark.parametrize(
    "bad",
    [(500, b"{}"), (404, b"{}"), (200, b"garbage"), (200, b"[]"), (200, b"{}"), (304, b"")],
)
def test_the_last_good_ones_outlive_a_bad_answer(
    shelf_at, scripted, served, answered, counters, bad
):
    server = scripted([served, answered(*bad)])
    shelf = shelf_at(server, refresh_seconds=0.01)
    shelf.want(ASKED)
    until(lambda: len(server.asked) >= 2)
    assert shelf.find(ASKED).etag == '"1"'


def test_a_corrupted_file_is_ignored_and_replaced(
    shelf_at, scripted, served, tmp_path, counters, caplog
):
    shelf = shelf_at(scripted([served]))
    shelf.want(ASKED)
    until(lambda: [*tmp_path.rglob("*.json")])
    (file,) = tmp_path.rglob("*.json")
    file.write_bytes(file.read_bytes()[:100])
    later = shelf_at(scripted([served]))
    assert later.find(ASKED) is None
    assert counters.snapshot()["cache_ignored"] == 1
    later.want(ASKED)
    until(lambda: len(file.read_bytes()) > 100)
    assert shelf_at(scripted([served])).find(ASKED) is not None
    assert "Stored thresholds are ignored" in caplog.text


def test_a_folder_that_can_t_be_written_costs_the_disk_only(
    shelf_at, scripted, served, tmp_path, counters
):
    (tmp_path / "file").write_text("in the way")
    shelf = shelf_at(scripted([served]), folder=tmp_path / "file")
    shelf.want(ASKED)
    until(lambda: counters.snapshot()["cache_unwritten"])
    assert shelf.find(ASKED) is not None


def test_a_mode_that_was_heard_is_kept_with_them(shelf_at, scripted, served, tmp_path):
    shelf = shelf_at(scripted([served]))
    shelf.hear_mode("main", "shadow")
    shelf.want(ASKED)
    until(lambda: [*tmp_path.rglob("*.json")])
    held = shelf_at(scripted([served])).find(ASKED)
    assert held.mode == "shadow"
    shelf.hear_mode("main", "enforce")
    assert shelf.mode_of("main", held) == "enforce"


def test_the_limit_of_a_model_is_known_from_any_role(shelf_at, scripted, served):
    shelf = shelf_at(scripted([served]))
    assert shelf.limit_of("m") is None
    shelf.want(ASKED)
    until(lambda: shelf.limit_of("m") == 190_000)
    assert shelf.limit_of("other") is None


def test_a_fault_of_its_own_does_not_end_the_thread(shelf_at, scripted, served, counters):
    def fail(request):
        raise RuntimeError("a fault")

    shelf = shelf_at(scripted([fail, served]))
    shelf.want(ASKED)
    until(lambda: counters.snapshot()["thresholds_failed"])
    shelf.want(Asked("other", "m"))
    until(lambda: counters.snapshot()["thresholds_fetched"])


def test_no_loop_can_want_without_end(shelf_at, scripted, served):
    server = scripted([served])
    shelf = shelf_at(server, folder=None)
    for number in range(1000):
        shelf.want(Asked("main", "m", (("growth_tokens", number),)))
    assert len(shelf._wanted) == 256


@pytest.mark.parametrize(
    ("role", "model", "fields", "asked"),
    [
        ("main", "m", {}, ASKED),
        ("main", "m", {"turn_id": "t", "explain": True, "rule": None}, ASKED),
        (
            "main",
            "m",
            {"ttl": "1h", "kind": "clear"},
            ASKED._replace(given=(("kind", "clear"), ("ttl", "1h"))),
        ),
        ("main", "m", {"weights": {}}, None),
        ("main", "m", {"cost": 1}, None),
        ("main", "m", {"ttl": ["1h"]}, None),
        ("main", None, {}, None),
        ("", "m", {}, None),
        (None, "m", {}, None),
        (["main"], {}, {}, None),
    ],
)
def test_what_thresholds_answer_a_question(role, model, fields, asked):
    assert asked_for(role, model, fields) == asked
