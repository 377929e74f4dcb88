"""Logs that are one JSON document: refused by line where they are broken, read again as a whole."""

import json

import pytest

from compactuary.errors import SourceError
from ledger.importing import import_logs
from tests.integration.ledger.rows import everything, imported, rows_of
from tests.unit.ledger.export import Export
from tests.unit.ledger.test_opencode import whole_export
from tests.unit.ledger.test_otel import chat, export


def pretty(document):
    return json.dumps(document, indent=2)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ses_1.json"


def test_half_a_document_names_its_line_and_keeps_nothing(ledger, tmp_path, path):
    lines = pretty(whole_export()).splitlines(keepends=True)
    path.write_text("".join(lines[:200]).rstrip())
    before = everything(ledger)
    (error,) = imported(ledger, tmp_path)
    assert isinstance(error, SourceError)
    assert error.where == f"{path}:200"
    assert "written whole" in error.remedy
    assert everything(ledger) == before
    path.write_text("".join(lines))
    assert imported(ledger, tmp_path) == []
    assert rows_of(ledger)["turns"]


def test_a_document_that_changed_is_read_again(ledger, path):
    log = Export().user("u1").answer("a1", "c1").user("u2").answer("a2")
    path.write_text(pretty(log.document))
    assert imported(ledger, path) == []
    log.messages.insert(0, log.messages.pop())
    log.info["title"] = "another head"
    path.write_text(pretty(Export(messages=log.messages[:3], info=log.info).document))
    assert imported(ledger, path) == []  # neither shorter nor replaced is a fault
    assert len(rows_of(ledger)["requests"]) == 2


@pytest.mark.parametrize(
    ("damage", "where"),
    [
        ({"tokens": {"input": -5}}, ": usage.input"),
        ({"time": {"created": "noon"}}, ": time.created"),
        ({"id": "m\0"}, ": message.id"),
        ({"time": 7}, ""),
    ],
)
def test_a_wrong_value_names_file_and_field(ledger, path, damage, where):
    log = Export().user("u1").answer("a1", "c1")
    log.messages[1]["info"] |= damage
    path.write_text(pretty(log.document))
    before = everything(ledger)
    (error,) = imported(ledger, path)
    assert error.where == f"{path}{where}"
    assert error.remedy
    assert everything(ledger) == before


def test_of_documents_by_lines_the_wrong_one_is_named(ledger, tmp_path):
    path = tmp_path / "traces.jsonl"
    lines = [export(chat(f"c{number}", None, number, number + 1)) for number in range(4)]
    wrong = json.dumps(lines[2]).replace("endTimeUnixNano", "x", 1)
    wrong = wrong.replace('"startTimeUnixNano": "', '"startTimeUnixNano": "-', 1)
    texts = [json.dumps(line) for line in lines]
    path.write_text("\n".join([*texts[:2], wrong, texts[3]]))
    (error,) = imported(ledger, path)
    assert error.where == f"{path}:3: startTimeUnixNano"
    path.write_text("\n".join([*texts[:2], "oops", texts[3]]))
    (error,) = imported(ledger, path)
    assert error.where == f"{path}:3"
    assert "--skip-corrupt" in error.remedy
    assert imported(ledger, path, skip_corrupt=True) == []
    assert len(rows_of(ledger)["requests"]) == 3


def test_other_json_in_a_folder_is_nothing_to_tell_of(ledger, tmp_path, path):
    (tmp_path / "package.json").write_text(pretty({"name": "x"}))
    (tmp_path / "tsconfig.json").write_text("{\n  // strict\n}\n")
    path.write_text(pretty(whole_export()))
    told = []
    reports = import_logs(ledger, [tmp_path], progress=told.append)
    assert [(report.path, report.outcome) for report in reports] == [(path, "read")]
    assert len(told) == 3  # a progress bar comes to its end all the same


def test_other_json_is_refused_where_it_is_named(ledger, tmp_path):
    path = tmp_path / "package.json"
    path.write_text(pretty({"name": "x"}))
    (error,) = imported(ledger, path)
    assert error.where == str(path)
    assert "neither a log" in error.problem
