import csv
import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compactuary.errors import InputError
from estimator.life_table import life_table
from estimator.standard_table import (
    TABLE,
    harnesses,
    kind_of_role,
    standard_name,
    standard_table,
)

REPO = Path(__file__).parents[3]
SHARED = REPO.parent / "shared" / "data"
needs_shared = pytest.mark.skipif(
    not SHARED.exists(), reason=f"the reference data are not there: {SHARED}"
)


def test_it_rests_on_thousands_of_turns():
    assert standard_table("main").turns == 2338
    assert standard_table("reviewer").turns == 266


def test_name_carries_a_date():
    assert re.fullmatch(r"standard \d{4}-\d\d-\d\d", standard_name())


def test_kind_of_role():
    assert kind_of_role("main") == "main"
    assert kind_of_role("Explore") == "subagent"
    assert standard_table("Explore") == standard_table("any other")


def test_header_tells_source_licences_bias_and_command():
    header = "".join(
        line for line in TABLE.read_text(encoding="utf-8").splitlines(True) if line[0] == "#"
    )
    for word in ("3945 turns", "639 sessions", "Apache-2.0, MIT", "bias", "make_standard_table"):
        assert word in header


def test_main_turns_have_a_rising_mean_and_sub_agents_a_falling_one():
    # the shape that the model reports of real turns: 16 at 0, 26 at 20, 49 at 80
    main = life_table(standard_table("main"))
    assert [round(main.at(age).mean) for age in (0, 20)] == [16, 26]
    assert main.at(80).mean == pytest.approx(49, abs=4)
    others = life_table(standard_table("Explore"))
    assert others.at(20).mean < others.at(0).mean


def test_benchmarks_are_asked_for_by_name():
    assert "tau-bench" in harnesses()
    coding = [name for name in harnesses() if name != "tau-bench"]
    assert standard_table("main").turns == sum(
        standard_table("main", harness=name).turns for name in coding
    )
    assert standard_table("main", harness="tau-bench").turns == 1341


def test_requests_are_a_unit_of_their_own():
    requests = standard_table("main", "requests")
    assert 0 < requests.turns <= standard_table("main").turns
    # parallel tool calls share one request
    assert life_table(requests).overall_mean < life_table(standard_table("main")).overall_mean


def test_unknown_unit_or_harness_is_refused():
    with pytest.raises(InputError, match="unit: is not one of requests, tool_calls"):
        standard_table("main", "tokens")
    with pytest.raises(InputError, match="harness: is not one of"):
        standard_table("main", harness="telepathy")


@needs_shared
def test_regenerating_it_gives_the_same_bytes(tmp_path):
    target = tmp_path / "again.csv"
    subprocess.run(
        [sys.executable, "-m", "examples.make_standard_table", str(SHARED), str(target)],
        cwd=REPO,
        check=True,
        capture_output=True,
    )
    assert target.read_bytes() == TABLE.read_bytes()


@needs_shared
def test_counts_are_those_of_the_file():
    with gzip.open(SHARED / "turns.csv.gz", "rt", encoding="utf-8") as lines:
        mine = [
            turn
            for turn in csv.DictReader(lines)
            if turn["harness"] == "codex" and turn["role"] == "main"
        ]
    codex = standard_table("main", harness="codex")
    assert codex.turns == len(mine)
    calls = sum(int(turn["n_tool_calls"]) for turn in mine)
    cut_with_calls = sum(turn["ended"] != "True" and turn["n_tool_calls"] != "0" for turn in mine)
    assert codex.calls == calls - cut_with_calls
