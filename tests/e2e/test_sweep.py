"""``compactuary sweep`` as a person starts it: offline, repeatable, and of the shape it is for."""

import re
import subprocess
import sys
from pathlib import Path

from tests.e2e.conftest import environment

PAGE = (Path(__file__).parents[2] / "docs" / "experiment.md").read_text("utf-8")
ARMS = ("baseline", "trimming", "naive", "preserving", "framework")


def test_the_page_is_what_is_printed_and_has_the_shape_that_the_experiment_is_for(compactuary):
    done = compactuary("sweep", "--trace")
    assert (done.code, done.err) == (0, "")
    told = done.out.splitlines()
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    blocks = [block.splitlines() for language, block in fenced if not language]
    assert len(blocks) == 5
    for block in blocks:
        assert [line for line in block if line not in told] == []
    _check_shape([line.split() for line in told])


def _check_shape(lines):
    """Check the table's rows: arm, documents, quality, documents read again."""
    rows = {
        (line[0], int(line[1])): (float(line[2]), int(line[3]))
        for line in lines
        if len(line) == 11 and line[0] in ARMS
    }
    assert list(rows) == [(arm, count) for arm in ARMS for count in (0, 10, 25, 50)]
    quality = {place: score for place, (score, _) in rows.items()}
    assert len({quality[arm, 0] for arm in ARMS}) == 1
    assert quality["preserving", 50] > quality["preserving", 0] - 0.05
    assert quality["trimming", 25] > quality["trimming", 50] + 0.25
    assert quality["preserving", 50] > quality["trimming", 50] + 0.25
    assert quality["baseline", 25] > quality["baseline", 50] + 0.1
    assert rows["naive", 50][1] > 5
    assert rows["preserving", 50][1] == 0


def test_a_picture_is_there_although_nobody_reads_what_is_printed(tmp_path):
    few = ["--documents", "0", "--arms", "baseline", "--thresholds", "", "--plot", "curves.png"]
    with subprocess.Popen(
        [sys.executable, "-m", "compactuary", "sweep", *few],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b"drew curves.png\n"
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_seed_prints_the_same_bytes(compactuary):
    words = ("sweep", "--documents", "25", "--arms", "naive", "--thresholds", "", "--trace")
    first = compactuary(*words, PYTHONHASHSEED="1")
    again = compactuary(*words, PYTHONHASHSEED="2")
    assert first.code == 0
    assert first.out == again.out
