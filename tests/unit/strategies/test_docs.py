"""Every example of docs/strategies.md, run as it stands, prints what the page says it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from strategies.registry import STRATEGIES

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "strategies.md").read_text("utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def test_every_example_was_found():
    assert len(EXAMPLES) == PAGE.count("```python") == 10


@pytest.mark.enable_socket
@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_an_example_prints_what_it_says(code, printed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flat = re.sub(r"^from compactuary\.(strategies|ledger)", r"from \1", code, flags=re.MULTILINE)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(flat, "docs/strategies.md", "exec"), {})
    assert said.getvalue() == printed


@pytest.mark.parametrize("name", STRATEGIES)
def test_every_strategy_is_in_the_table(name):
    assert len(re.findall(rf"^\| `{name}` \|", PAGE, re.MULTILINE)) == 1
