import json
from pathlib import Path

import pytest

ORACLES = Path(__file__).parents[2] / "data" / "oracles_estimator.json"


@pytest.fixture(scope="session")
def oracles():
    return json.loads(ORACLES.read_text(encoding="utf-8"))
