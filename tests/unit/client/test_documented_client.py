"""Every setting, counter and fallback of the client is in docs/client.md, and its example runs."""

import inspect
import re
from pathlib import Path

import compactuary
from compactuary.advice import FALLBACKS
from compactuary.counters import COUNTERS
from compactuary.delivery import _LATER, _MOST_FAULTS
from compactuary.endpoint import KEY_VARIABLE, URL_VARIABLE

DOCS = (Path(__file__).parents[3] / "docs" / "client.md").read_text("utf-8")


def test_every_setting_with_its_default():
    parameters = [*inspect.signature(compactuary.Client).parameters.values()]
    assert len(parameters) == 8
    for parameter in parameters:
        default = "" if parameter.default is None else f"{parameter.default:g}"
        if parameter.default is True:
            default = "True"
        assert re.search(rf"\| `{parameter.name}` \| .*{re.escape(default)}", DOCS), parameter
    assert URL_VARIABLE in DOCS
    assert KEY_VARIABLE in DOCS


def test_every_counter_and_fallback():
    for name in (*COUNTERS, "records_waiting"):
        assert f"`{name}`" in DOCS.split("## Counters")[1], name
    for name in FALLBACKS:
        assert f"\n| `{name}` |" in DOCS, name


def test_what_is_tried_again():
    said = ", ".join(map(str, _LATER[:-1])) + f" or {_LATER[-1]}"
    assert said in DOCS
    assert _MOST_FAULTS == 8


def test_the_example_runs_without_a_server(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("COMPACTUARY_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (example,) = re.findall(r"^```python\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)
    there: dict = {}
    exec(example, there)
    assert capsys.readouterr().out.startswith("wait default Wait, by default.")
    there["client"].close(0)
