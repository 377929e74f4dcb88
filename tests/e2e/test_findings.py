"""docs/findings.md: the note's figures come out of its example."""

import json
import re
from pathlib import Path

from examples.note_compactions import JUDGED, write_note_compactions

DOCS = (Path(__file__).parents[2] / "docs" / "findings.md").read_text("utf-8")
#: C and s by context before, worked out in the docs and beside the rows.
BY_HAND = {70_000: (47_450, 2_900), 64_000: (41_100, 2_800), 78_000: (55_150, 3_100)}


def test_what_the_docs_print_is_printed(compactuary, tmp_path):
    write_note_compactions(tmp_path)
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", DOCS, re.MULTILINE | re.DOTALL)
    blocks = [block for language, block in fenced if not language]
    assert len(blocks) == 2
    for block, name in zip(blocks, ("judged", "production"), strict=True):
        printed = compactuary("audit", tmp_path / name, COLUMNS="80")
        assert (printed.code, printed.err) == (0, "")
        assert block in printed.out


def test_thirteen_of_thirteen_verdicts(compactuary, tmp_path):
    write_note_compactions(tmp_path)
    told = json.loads(compactuary("audit", tmp_path / "judged", "--json").out)["compactions"]
    assert [one["remaining"]["requests"] for one in told] == [row.ahead for row in JUDGED]
    for one in told:
        cost, saving = BY_HAND[one["context_before"]]
        ahead = one["remaining"]["requests"]
        assert one["verdict"] == ("paid" if ahead * saving > cost else "lost")
        assert one["saving_per_call"] == saving
        if ahead:
            assert (one["cost"], one["net"]) == (cost, ahead * saving - cost)
