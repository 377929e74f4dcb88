import tomllib
from pathlib import Path

import pytest

from compactuary.__main__ import EXTRA_OF_COMMAND, main
from compactuary.version import VERSION

REPO = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
LOADED = """
import sys
before = {name.partition(".")[0] for name in sys.modules}
import compactuary
after = {name.partition(".")[0] for name in sys.modules}
print(sorted(after - before - set(sys.stdlib_module_names)), compactuary.__file__)
"""


@pytest.mark.parametrize("kind", ["bare", "full"])
def test_the_client_loads_the_standard_library_only(request, kind, tmp_path):
    environment = request.getfixturevalue(kind)
    done = environment.run(environment.python, "-c", LOADED, cwd=tmp_path)
    assert done.stdout.startswith("['compactuary'] " + str(environment.folder)), done.stderr


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
        "decide": "analysis",
        "export": "analysis",
        "prices": "analysis",
        "db": "analysis",
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
