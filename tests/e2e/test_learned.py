"""What real logs teach: printed per role, and held against what came next."""

import csv
import json
import sys
from collections import defaultdict
from statistics import median

import numpy as np
import pytest

from benchmarks.first_compactions import actual, errors, left_out, prequential, projects
from tests.conftest import SHARED, needs_shared_data

pytestmark = needs_shared_data

DATA = SHARED / "data"
#: Of the first request after a compaction: context, cache reads, cache writes.
MOST_WRONG = {"context": 0.15, "read": 0.25, "written": 0.35}


@pytest.fixture(scope="module")
def found():
    return projects(DATA / "logs")


def medians(pairs):
    return {name: median(wrong) for name, wrong in errors(pairs).items()}


def test_the_first_request_after_a_compaction_is_foretold_by_those_before_it(found):
    told = list(prequential(found))
    assert len(told) > 90
    wrong = medians([(one.learned, actual(one.seen)) for one in told])
    assert all(wrong[name] <= most for name, most in MOST_WRONG.items()), wrong


def test_the_first_request_after_a_compaction_is_foretold_by_all_others(found):
    wrong = medians(left_out(found))
    assert all(wrong[name] <= most for name, most in MOST_WRONG.items()), wrong


def test_the_other_readers_table_says_the_same():
    with (DATA / "compactions.csv").open(encoding="utf-8", newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if row["harness"] == "claude-code"
            and row["kind"] == "compact"
            and row["ctx_first_call_after"]
        ]
    assert len(rows) > 80
    names = ("ctx_first_call_after", "cache_read_first_call_after", "cache_write_first_call_after")
    used = np.array([[float(row[name]) for name in names] for row in rows])
    wrong = defaultdict(list)
    for number, (context, read, written) in enumerate(used):
        others = np.median(np.delete(used, number, axis=0), axis=0)
        uncached = context - read - written
        guesses = (others[0], others[1], others[0] - others[1] - uncached)
        for name, guess, true in zip(MOST_WRONG, guesses, (context, read, written), strict=True):
            if true:
                wrong[name].append(abs(guess - true) / true)
    found = {name: median(values) for name, values in wrong.items()}
    assert all(found[name] <= most for name, most in MOST_WRONG.items()), found


@pytest.mark.parametrize("assumed", [44_000, 51_000])
def test_it_is_better_than_what_is_assumed_from_the_start(found, assumed):
    """The first five compactions of each project: before any, and after one to four."""
    soon = [one for one in prequential(found) if one.before < 5]
    learned, always = [], []
    for one in soon:
        truth = actual(one.seen).context
        learned.append(abs(one.learned.context - truth) / truth)
        always.append(abs(assumed - truth) / truth)
    assert len({one.project for one in soon}) >= 4
    assert np.mean(learned) < 0.7 * np.mean(always)


def test_learned_per_role_from_all_logs(compactuary, tmp_path):
    db = tmp_path / "real.db"
    folders = [*sorted((DATA / "logs").glob("*/claude-code")), DATA / "logs" / "spotter"]
    done = compactuary("import", *folders, "--skip-corrupt", "--db", db, "--json")
    assert done.code == 0, done.err
    sys.stdout.write(compactuary("learn", "--db", db).out)
    rows = json.loads(compactuary("learn", "--json", "--db", db).out)["roles"]
    by_role = {row["role"]: row for row in rows if row["model"] is None}
    main, explore = by_role["main"], by_role["Explore"]
    [summary] = [one for one in main["compactions"] if one["strategy"] == "summary"]
    # The model, §3: medians of real compactions are 51k and 28k; §2: half of the pauses are
    # minutes. An agent that explores begins with less, and its run is its session.
    assert summary["context_after_tokens"]["median"] == pytest.approx(51_000, rel=0.05)
    assert summary["cached_after_tokens"]["median"] == pytest.approx(28_000, rel=0.15)
    assert summary["rework_tokens"]["value"] > 0
    assert main["miss_probability"]["value"] < 0.01
    assert 0.5 < main["resume_probability"]["value"] < 0.95
    assert 60 < main["gap_seconds"]["median"] < 600
    assert 0.1 < main["cold_probability"]["300"] < 0.5
    assert explore["resume_probability"]["value"] == 0.0
    assert explore["requests_after_turn"]["value"] < 1
    assert explore["prefix_tokens"]["median"] < 0.7 * main["prefix_tokens"]["median"]
