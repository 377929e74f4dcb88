"""The OpenAPI document against a live service: schemathesis asks whatever the document allows.

SOAK_EXAMPLES (`make soak`) is how many requests it makes up for each operation.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.conftest import environment

pytestmark = pytest.mark.enable_socket  # loopback only

EXAMPLES = int(os.environ.get("SOAK_EXAMPLES", "1"))
#: With one example each its fixed cases alone are more than a thousand.
LEAST_REQUESTS = 500 if EXAMPLES == 1 else 10_000
#: Every check but these.
SETTINGS = """
[checks]
# Whether a valid question can be answered depends on prices and the ledger.
positive_data_acceptance.enabled = false
# An id may hold slashes: PUT /turns/x/end begins a turn of that name.
unsupported_method.enabled = false
allow_header_conformance.enabled = false

[[operations]]
include-path = "/ingest"
# A stream of events is text, and whatever is made up instead of a text is sent as one.
checks.negative_data_rejection.enabled = false
"""


def _asked(client, headers):
    """Return how many requests the service has answered, by status."""
    families = text_string_to_metric_families(client.get("/metrics", headers=headers).text)
    asked = {}
    for family in families:
        if family.name == "compactuary_http_requests":
            for sample in family.samples:
                status = int(sample.labels["status"])
                asked[status] = asked.get(status, 0) + int(sample.value)
    return asked


def test_every_answer_is_as_documented(compactuary, serve, tmp_path):
    db = tmp_path / "l.db"
    made = compactuary("keys", "create", "fuzz", "--scope", "admin", "--db", db)
    headers = {"authorization": f"Bearer {made.out.strip()}"}
    client, process = serve(db)
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    command = [
        str(Path(sys.executable).with_name("schemathesis")),
        *("run", f"{client.base_url}/openapi.json".replace("//openapi", "/openapi")),
        *("--header", f"Authorization: {headers['authorization']}"),
        *("--max-examples", str(EXAMPLES), "--seed", "1", "--warnings", "off", "--no-color"),
    ]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(tmp_path, SCHEMATHESIS_HOOKS="tests.e2e.contract_hooks"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr
    assert process.poll() is None
    asked = _asked(client, headers)
    generated = re.search(r"([\d,]+) generated", done.stdout)
    told = f"{sum(asked.values())} requests, {generated and generated[0]}: {asked}"
    sys.stdout.write(f"{told}\n")
    assert sum(asked.values()) >= LEAST_REQUESTS, told
    assert not [status for status in asked if status >= 500], told
    assert asked[200] > sum(asked.values()) / 20, told
