"""``/metrics``: parses, and adds up with what was asked."""

import os
import re
from pathlib import Path

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from api.metrics import families_of
from api.shared_metrics import SharedMetrics

ASKED = {"role": "main", "calls": 1, "cost": 1, "saving": 1}


def samples_of(text):
    """Return the value of each sample by its name and its labels, the worker's left out."""
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "worker"}
            found[sample.name, frozenset(labels.items())] = sample.value
            assert sample.labels["worker"] == str(os.getpid())
    return found


def _total(samples, name, **labels):
    """Return the sum of a name's samples that have these labels."""
    wanted = frozenset(labels.items())
    return sum(at for (found, has), at in samples.items() if found == name and wanted <= has)


def test_counts_add_up(client, until):
    for number in range(7):
        body = ASKED | {"turn_id": f"t{number % 5}"}
        assert client.post("/should-compact", json=body).status_code == 200
    assert client.post("/should-compact", json={"role": "main"}).status_code == 422
    assert client.get("/tables/a").status_code == client.get("/tables/b").status_code == 404
    assert client.get("/no/such/path").status_code == 404
    until(lambda: client.get("/status").json()["decision_log"]["written"] == 5)
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=")
    samples = samples_of(response.text)
    # Of seven questions two were asked a second time.
    assert _total(samples, "compactuary_decisions_total") == 5
    assert _total(samples, "compactuary_decisions_total", mode="enforce") == 5
    assert _total(samples, "compactuary_decisions_total", rule="break-even") == 5
    assert _total(samples, "compactuary_repeated_answers_total") == 2
    assert _total(samples, "compactuary_log_written_total") == 5
    assert _total(samples, "compactuary_log_queue") == 0
    assert _total(samples, "compactuary_log_dropped_total") == 0
    requests = "compactuary_http_requests_total"
    assert _total(samples, requests, route="/should-compact", status="200", method="POST") == 7
    assert _total(samples, requests, route="/should-compact", status="422") == 1
    # Names from paths are no labels: there may be any number of them.
    assert _total(samples, requests, route="/tables/{role:path}", status="404") == 2
    assert _total(samples, requests, route="none", status="404") == 1
    seconds = "compactuary_http_request_seconds"
    for route in ("/should-compact", "/tables/{role:path}", "none"):
        count = _total(samples, f"{seconds}_count", route=route)
        assert count == _total(samples, requests, route=route)
        assert count == _total(samples, f"{seconds}_bucket", route=route, le="+Inf")
        assert 0 < _total(samples, f"{seconds}_sum", route=route) < 60


def test_buckets_are_cumulative_and_the_snapshot_is_told(client, told, settled):
    told("t", 3)
    settled()
    samples = samples_of(client.get("/metrics").text)
    buckets = sorted(
        (float(dict(labels)["le"]), at)
        for (name, labels), at in samples.items()
        if name == "compactuary_http_request_seconds_bucket"
        and ("route", "/turns/{turn_id:path}/requests") in labels
    )
    counts = [count for _, count in buckets]
    assert counts == sorted(counts)
    assert counts[-1] == 3
    version = client.get("/status").json()["snapshot"]["version"]
    assert _total(samples, "compactuary_snapshot_version") == version > 0
    assert 0 <= _total(samples, "compactuary_snapshot_age_seconds") < 60
    assert _total(samples, "compactuary_refresh_failing") == 0
    assert _total(samples, "compactuary_drift_alarms_total") == 0


def test_openmetrics_is_spoken_too(sqlite_client):
    accept = {"accept": "application/openmetrics-text; version=1.0.0"}
    response = sqlite_client.get("/metrics", headers=accept)
    assert response.headers["content-type"].startswith("application/openmetrics-text")
    names = {family.name for family in openmetrics.text_string_to_metric_families(response.text)}
    assert "compactuary_decisions" in names


def test_other_workers_are_told_while_they_live(sqlite_client, tmp_path):
    service = sqlite_client.app.state.service
    families = list(families_of(service))
    shared = SharedMetrics(str(tmp_path))
    own = tmp_path / f"{os.getpid()}.json"
    own.write_text("not read")
    told = '[["compactuary_info","Versions.","gauge",[["compactuary_info",{"worker":"%d"},%s]]]]'
    alive = tmp_path / f"{os.getppid()}.json"
    alive.write_text(told % (os.getppid(), "null"))
    gone = tmp_path / "4194999.json"  # beyond the largest process number
    gone.write_text(told % (4194999, "1.0"))
    merged = {family.name: family for family in shared.with_others(families)}
    workers = [sample.labels["worker"] for sample in merged["compactuary_info"].samples]
    assert sorted(workers) == sorted([str(os.getpid()), str(os.getppid())])
    assert not gone.exists()
    assert alive.exists()


def test_a_worker_that_stops_takes_its_file_away(tmp_path, until):
    shared = SharedMetrics(str(tmp_path / "made"))
    shared.start()
    file = tmp_path / "made" / f"{os.getpid()}.json"
    until(file.exists)
    shared.stop()
    assert not list(file.parent.iterdir())


def test_every_metric_is_documented_and_no_other(sqlite_client):
    docs = (Path(__file__).parents[3] / "docs" / "observability.md").read_text("utf-8")
    told = set(re.findall(r"`(compactuary_[a-z_]+)`", docs))
    families = families_of(sqlite_client.app.state.service)
    made = {f"{one.name}_total" if one.type == "counter" else one.name for one in families}
    assert told == made
