"""The report: one file that needs nothing, and from which nobody learns whose logs these were."""

import csv
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from examples.claude_code_tree import write_tree
from tests.e2e.session_by_hand import SECRET, write_session

TABLES = {"remaining", "audit", "ahead", "rules", "roles"}
PICTURES = {"remaining", "crossing", "costs", "contexts"}


@pytest.fixture
def logs(tmp_path):
    """A generated tree with compactions, and sessions of two private projects."""
    write_tree(tmp_path / "logs", sessions=14)
    for day in range(8):
        cwd = "/home/alice/acme-merger" if day % 2 else "/home/alice/layoffs"
        contexts = [20_000, 40_000, 70_000]
        write_session(tmp_path / "logs", f"e5c8{day}-private", contexts, day=day, cwd=cwd)
    return tmp_path / "logs"


def whole(line):
    """Return a line's record, nothing of a torn one."""
    try:
        return json.loads(line)
    except json.JSONDecodeError:
        return {}


def secrets(logs):
    """What of the logs may be in no report: ids, folders, paths, texts."""
    told = {SECRET, "alice", "acme-merger", "layoffs", str(logs), "/home/"}
    for file in logs.rglob("*.jsonl"):
        told.add(file.stem)
        for line in file.read_text("utf-8").split("\n"):
            value = whole(line)
            names = ("sessionId", "uuid", "parentUuid", "cwd", "agentId", "requestId", "slug")
            told |= {value[name] for name in names if isinstance(value.get(name), str)}
            message = value.get("message")
            if isinstance(message, dict):
                told.add(message.get("id") or SECRET)
                content = message.get("content")
                told |= {content} if isinstance(content, str) else set()
    # An id of three letters is in any text.
    return {name for name in told if name and len(name) > 4}


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [(name, value) for name, value in attrs if name in {"src", "href", "data"}]


def test_one_file_that_needs_and_tells_nothing_else(compactuary, logs, tmp_path):
    done = compactuary("report", logs, "--html", tmp_path / "report.html")
    assert done.code == 0, done.err
    text = (tmp_path / "report.html").read_text("utf-8")
    page = Page(text)
    assert page.tags.count("svg") == len(PICTURES)
    assert page.tags.count("table") == len(TABLES)
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    # Only parts of the page itself are referred to.
    assert all(value.startswith("#") for _, value in page.links)
    assert "url(http" not in text
    assert "@import" not in text
    assert "@media print" in text
    for drawn in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ET.fromstring(drawn)
    for told in ("Remaining calls by role", "Where to switch a rule on", "Assumed"):
        assert told in text
    for secret in secrets(logs):
        assert secret not in text, secret


def test_no_form_of_it_tells_whose_logs_these_were(compactuary, logs, tmp_path):
    told = [compactuary("report", logs).out, compactuary("report", logs, "--json").out]
    done = compactuary("report", logs, "--save", tmp_path / "parts")
    assert done.code == 0, done.err
    files = {file.name for file in (tmp_path / "parts").iterdir()}
    assert files == {
        *(f"{name}.csv" for name in TABLES),
        *(f"{name}.{ending}" for name in PICTURES for ending in ("png", "svg")),
    }
    texts = [file for file in (tmp_path / "parts").iterdir() if file.suffix != ".png"]
    told += [file.read_text("utf-8") for file in texts]
    hidden = secrets(logs)
    for text in told:
        assert text
        for secret in hidden:
            assert secret not in text, secret
    payload = json.loads(told[1])
    one = payload["audit"]["compactions"][0]
    assert re.fullmatch(r"\d+-[0-9a-f]{10}", one["session_id"])
    projects = {one["project"] for one in payload["audit"]["compactions"]}
    assert all(re.fullmatch(r"project \d", name) for name in projects)


def test_it_says_what_the_other_commands_say(compactuary, logs, tmp_path):
    told = json.loads(compactuary("report", logs, "--json").out)
    audited = json.loads(compactuary("audit", logs, "--json").out)
    replayed = json.loads(compactuary("backtest", logs, "--by-role", "--json").out)
    for name in ("all", "idle", "by_role", "by_ahead", "crossing", "rework_tokens"):
        assert told["audit"]["summary"][name] == audited["summary"][name], name
    for name in ("rules", "baseline", "requests", "sessions", "by_role"):
        assert told["backtest"][name] == replayed[name], name
    compactuary("report", logs, "--save", tmp_path / "parts")
    with (tmp_path / "parts" / "rules.csv").open() as lines:
        costs = {row["rule"]: float(row["cost"]) for row in csv.DictReader(lines)}
    assert costs == {one["rule"]: one["cost"] for one in [*replayed["rules"], replayed["baseline"]]}


def test_a_role_that_could_be_a_sentence_is_not_told(compactuary, tmp_path):
    rows = ["role,session_id,tool_calls,status"]
    rows += [f"{role},s{n},{n % 7},ended" for n in range(40) for role in ("dev", "Fix /etc now")]
    (tmp_path / "turns.csv").write_text("\n".join(rows) + "\n", "utf-8")
    done = compactuary("report", tmp_path / "turns.csv", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert {row["role"] for row in told["remaining"]} == {"dev", "all roles"}
    assert "etc" not in done.out
    assert told["backtest"] is None
    assert "no turn has a request with its context" in told["problem"]
    html = compactuary("report", tmp_path / "turns.csv", "--html", tmp_path / "r.html")
    assert html.code == 0
    assert "No compaction in these logs." in (tmp_path / "r.html").read_text("utf-8")


def test_a_ledger_without_a_turn_makes_an_empty_report(compactuary, tmp_path):
    done = compactuary("report", "--html", tmp_path / "r.html")
    assert done.code == 0, done.err
    assert "No turn has ended yet." in Path(tmp_path / "r.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nothing-here"], "nothing-here: no such file or folder"),
        ([".", "--db", "l.db"], "PATH, --db"),
        (["--horizon", "week"], "--horizon"),
        (["logs", "--html", "no/such/folder/r.html"], "can't be written"),
        (["logs", "--save", "logs/projects/x.jsonl/y"], "can't be written"),
        (["--weight", "cache_read=.1"], "weights."),
    ],
)
def test_wrong_words_are_told_in_one_line(compactuary, tmp_path, words, told):
    write_session(tmp_path / "logs", "s0", [20_000, 21_000], day=0)
    (tmp_path / "logs" / "projects" / "x.jsonl").write_text('{"type": "summary"}\n', "utf-8")
    done = compactuary("report", *words)
    assert done.code == 2, done.err
    assert done.out == ""
    assert told in done.err
    assert done.err.count("\n") == 1
