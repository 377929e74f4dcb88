"""Real logs through the command, held against lifelines' Kaplan–Meier."""

import json
import warnings
from pathlib import Path

import pytest

pytestmark = pytest.mark.enable_socket  # loopback only

LOGS = Path(__file__).parents[2].parent / "shared" / "data" / "logs"
SOURCES = [LOGS / "entireio+cli" / "claude-code", LOGS / "spotter"]
needs_shared_data = pytest.mark.skipif(
    not LOGS.is_dir(), reason="the shared data folder is not beside this checkout"
)
AGES = (0, 5, 10, 20, 40)


def _exposures(turns):
    """Return (exit, ended) of the turns that were at risk for a first call: cut ones to N − 1."""
    rows = [
        (int(turn["tool_calls"]) - (turn["status"] != "ended"), turn["status"] == "ended")
        for turn in turns
        if turn["role"] == "main"
    ]
    return [(exit_, ended) for exit_, ended in rows if exit_ > 0]


def _tail_age(rows):
    """Return the last age with 20 turns at risk and 3 ends beyond it."""
    age = 0
    while (
        sum(exit_ > age + 1 for exit_, _ in rows) >= 20
        and sum(exit_ > age + 1 and ended for exit_, ended in rows) >= 3
    ):
        age += 1
    return age


def _survival(rows, ages):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lifelines' and pandas' own
        from lifelines import KaplanMeierFitter  # noqa: PLC0415 - slow, and needed here only

        fitter = KaplanMeierFitter().fit([e for e, _ in rows], [ended for _, ended in rows])
        return fitter.survival_function_at_times(list(ages)).tolist()


@needs_shared_data
def test_the_table_of_real_logs_is_kaplan_meiers(compactuary, serve, tmp_path):
    db = tmp_path / "real.db"
    done = compactuary("import", *SOURCES, "--db", db, "--json")
    assert done.code == 0, done.err
    turns = json.loads(compactuary("export", "turns", "--json", "--db", db).out)
    assert len(turns) > 300
    rows = _exposures(turns)
    tail = _tail_age(rows)
    assert tail > max(AGES)  # else the ages below would say nothing
    survival = _survival(rows, range(tail + 1))
    beyond = sum(max(0, exit_ - tail) for exit_, _ in rows)
    ends = sum(exit_ > tail and ended for exit_, ended in rows)

    def mean_residual_life(age):
        restricted = sum(survival[age:tail])
        return (restricted + survival[tail] * beyond / ends) / survival[age]

    words = ["table", "--role", "main", "--at", ",".join(map(str, AGES)), "--json", "--db", db]
    [told] = json.loads(compactuary(*words).out)
    for age in AGES:
        assert told["m"][str(age)] == pytest.approx(mean_residual_life(age), rel=1e-9)
        assert told["at_risk"][str(age)] == sum(exit_ > age for exit_, _ in rows)
    client, _ = serve(db)
    table = client.get("/tables/main").json()
    assert table["tail_age"] == tail
    assert [row["survival"] for row in table["rows"]] == pytest.approx(survival, abs=1e-9)
    # Interactive turns: the longer they have run, the longer they go on.
    assert told["m"]["40"] > told["m"]["20"] > told["m"]["0"]
