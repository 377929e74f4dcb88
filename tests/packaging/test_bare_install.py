import tomllib
from pathlib import Path

import pytest

from compactuary.__main__ import EXTRA_OF_COMMAND, main
from compactuary.version import VERSION

REPO = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
#: Nobody listens at port 1; the client says so without an exception, and records in vain.
USE = """
client = compactuary.Client("http://127.0.0.1:1", cache="cache", exit_seconds=0)
with client.turn("main", "session", model="m") as turn:
    assert turn.should_compact(1000).fallback == "unreachable"
    turn.request("r", {"output": 1}, 1)
"""
USE_ASYNC = """
import asyncio
async def use():
    async with compactuary.AsyncClient("http://127.0.0.1:1", cache="cache", exit_seconds=0) as one:
        assert (await one.should_compact("main", 1, 1000, "m")).fallback == "unreachable"
asyncio.run(use())
"""
LOADED = """
import sys
HEAVY = ("numpy", "pandas", "sqlalchemy", "orjson", "pydantic", "fastapi", "httpx", "platformdirs")
sys.modules.update(dict.fromkeys(HEAVY))  # importing one of them fails
before = {name.partition(".")[0] for name in sys.modules}
import compactuary
USE
after = {name.partition(".")[0] for name in sys.modules}
print(sorted(after - before - set(sys.stdlib_module_names)), compactuary.__file__)
"""


@pytest.mark.parametrize("kind", ["bare", "full"])
@pytest.mark.parametrize("use", ["pass", USE, USE_ASYNC], ids=["import", "sync", "async"])
def test_the_client_loads_the_standard_library_only(request, kind, use, tmp_path):
    environment = request.getfixturevalue(kind)
    done = environment.run(environment.python, "-c", LOADED.replace("USE", use), cwd=tmp_path)
    assert done.stdout.startswith("['compactuary'] " + str(environment.folder)), done.stderr


def test_naming_a_client_is_what_loads_it(bare, tmp_path):
    script = (
        "import sys, compactuary; assert not {'json', 'socket', 'typing'} & {*sys.modules};"
        "compactuary.Client; assert not {'logging', 'ssl', 'asyncio'} & {*sys.modules};"
        "assert compactuary.Client.__module__ == 'compactuary.client';"
        "assert {*compactuary.__all__} <= {*dir(compactuary), 'Advice', 'AsyncClient'}"
    )
    # -S: what the environment's own .pth files load says nothing about ours.
    place = next(bare.folder.glob("lib/python*/site-packages"))
    script = f"import sys; sys.path.append({str(place)!r}); {script}"
    done = bare.run(bare.python, "-I", "-S", "-c", script, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_client_is_imported_within_30_ms(bare, tmp_path):
    script = (
        "import time; begun = time.process_time(); import compactuary; compactuary.Client;"
        "print(time.process_time() - begun)"
    )
    runs = [bare.run(bare.python, "-c", script, cwd=tmp_path) for _ in range(8)]
    assert min(float(done.stdout) for done in runs) < 0.03


def test_another_name_is_no_part_of_it(bare, tmp_path):
    done = bare.run(bare.python, "-c", "import compactuary; compactuary.Cleint", cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == (
        "AttributeError: module 'compactuary' has no attribute 'Cleint'"
    )


@pytest.mark.parametrize("place", ["installed", "flat"])
@pytest.mark.parametrize(
    ("words", "command", "extra"),
    [
        (["table"], "table", "analysis"),
        (["import", "logs"], "import", "analysis"),
        (["db", "upgrade"], "db", "analysis"),
        (["drift"], "drift", "analysis"),
        (["serve", "--port", "1"], "serve", "server"),
    ],
)
def test_a_command_names_the_extra_that_it_lacks(bare, tmp_path, place, words, command, extra):
    folder = REPO if place == "flat" else tmp_path
    done = bare.run(bare.python, "-m", "compactuary", *words, cwd=folder)
    assert done.returncode == 2
    assert done.stdout == ""
    line, end = done.stderr.split("\n")
    assert end == ""
    assert line.startswith(
        f"compactuary {command} needs packages that the extra '{extra}' brings ("
    )
    assert line.endswith(f' is missing). Install them with: pip install "compactuary[{extra}]"')
    assert extra in PROJECT["optional-dependencies"]


@pytest.mark.parametrize("words", [["--help"], []])
def test_help_lists_the_commands_and_their_extras(bare, tmp_path, words):
    done = bare.run(bare.compactuary, *words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    rows = dict(line.split() for line in done.stdout.splitlines() if line.startswith("  "))
    assert rows == {
        "import": "analysis",
        "table": "analysis",
        "split": "analysis",
        "drift": "analysis",
        "audit": "analysis",
        "backtest": "analysis",
        "report": "analysis",
        "learn": "analysis",
        "decide": "analysis",
        "thresholds": "analysis",
        "decisions": "analysis",
        "export": "analysis",
        "prices": "analysis",
        "db": "analysis",
        "keys": "analysis",
        "prune": "analysis",
        "backup": "analysis",
        "restore": "analysis",
        "prompt": "analysis",
        "sweep": "langgraph",
        "lab": "lab",
        "serve": "server",
    }


def test_an_unknown_command_is_no_missing_extra(bare, tmp_path):
    done = bare.run(bare.compactuary, "tabel", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "table" in done.stderr


def test_the_version_needs_no_extra(bare, tmp_path):
    done = bare.run(bare.compactuary, "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"compactuary {VERSION}\n")


def raising(name: str):
    def run(words):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    return run


def test_a_package_missing_while_the_command_runs_counts(monkeypatch, capsys):
    monkeypatch.setattr("cli.app.run", raising("uvicorn_of_nowhere.config"))
    assert main(["serve"]) == 2
    assert "(uvicorn_of_nowhere is missing)" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["compactuary.nowhere", "cli.nowhere", "json.nowhere"])
def test_a_missing_part_of_an_installed_package_is_not_hidden(monkeypatch, name):
    monkeypatch.setattr("cli.app.run", raising(name))
    with pytest.raises(ModuleNotFoundError, match=name):
        main(["table"])


def test_every_command_has_an_extra(full, decoys):
    script = (
        "from typer.main import get_command; from compactuary.cli.app import make_app;"
        "print(*sorted(get_command(make_app()).commands))"
    )
    done = full.run(full.python, "-c", script, cwd=decoys)
    assert done.stdout.split() == sorted(EXTRA_OF_COMMAND), done.stderr


def test_the_notebook_s_door_names_the_extra_that_it_lacks(bare, tmp_path):
    done = bare.run(bare.python, "-c", "import compactuary.analysis", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        ' is missing). Install them with: pip install "compactuary[analysis]"'
    )
