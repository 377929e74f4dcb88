"""``compactuary sweep`` as a person starts it: offline, repeatable, and of the shape it is for."""

import json


def test_the_curves_have_the_shape_that_the_experiment_is_for(compactuary):
    done = compactuary("sweep", "--json", "--thresholds", "")
    assert (done.code, done.err) == (0, "")
    rows = {(one["arm"], one["documents"]): one for one in json.loads(done.out)["arms"]}
    arms = ("baseline", "trimming", "naive", "preserving", "framework")
    assert list(rows) == [(arm, count) for arm in arms for count in (0, 10, 25, 50)]
    quality = {place: one["quality"] for place, one in rows.items()}
    assert len({quality[arm, 0] for arm in arms}) == 1
    assert quality["preserving", 50] > quality["preserving", 0] - 0.05
    assert quality["trimming", 25] > quality["trimming", 50] + 0.25
    assert quality["preserving", 50] > quality["trimming", 50] + 0.25
    assert quality["baseline", 25] > quality["baseline", 50] + 0.1
    assert rows["naive", 50]["repeated_reads"] > 5
    assert rows["preserving", 50]["repeated_reads"] == 0


def test_the_same_seed_prints_the_same_bytes(compactuary):
    words = ("sweep", "--documents", "25", "--arms", "naive", "--thresholds", "", "--trace")
    first = compactuary(*words, PYTHONHASHSEED="1")
    again = compactuary(*words, PYTHONHASHSEED="2")
    assert first.code == 0
    assert first.out == again.out
