"""Ctrl-C: one line, exit code 130 and no traceback, wherever it comes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli import import_command
from cli.app import run
from ledger.importing import FileReport
from ledger.recording import Recorded

ROOT = Path(__file__).parents[3]

# Each begins as in a terminal: whoever runs the tests in the background ignores SIGINT.
#: Presses Ctrl-C when a package is looked for, as a person does while packages load.
WHILE_LOADING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)

class Presses:
    def find_spec(self, name, path=None, target=None):
        if name == {package!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Presses())
sys.argv = ["compactuary", "prices", "gpt-5.5"]
from compactuary.__main__ import main
sys.exit(main())
"""

#: Presses it when the command has printed its result, and when the interpreter puts itself away.
AFTERWARDS = """
import atexit, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)

def press():
    os.kill(os.getpid(), signal.SIGINT)

class Last:
    def __del__(self, press=press):
        press()

sys.argv = ["compactuary", "prices", "gpt-5.5"]
from compactuary.__main__ import main
{when}
code = main()
{then}
sys.exit(code)
"""


def ran(program):
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("package", ["typer", "cli.prices", "genai_prices"])
def test_while_packages_load(package):
    assert ran(WHILE_LOADING.format(package=package)) == (130, "", "stopped\n")


def test_behind_the_result():
    code, out, err = ran(AFTERWARDS.format(when="", then="press()"))
    assert out.startswith("gpt-5.5 ")
    assert (code, err) == (130, "stopped\n")


def test_in_the_interpreters_last_steps():
    code, out, err = ran(AFTERWARDS.format(when="", then="sys.last_steps = Last()"))
    assert out.startswith("gpt-5.5 ")
    assert (code, err) == (0, "")


def test_an_ignored_signal_stays_ignored():
    ignored = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    code, _, err = ran(AFTERWARDS.format(when=ignored, then="press()"))
    assert (code, err) == (0, "")


@pytest.fixture
def stopped_import(tmp_path, monkeypatch, capsys):
    """Return what an import says that is stopped after these files."""

    def stop(*reports):
        def import_logs(engine, paths, options, progress):
            for report in reports:
                progress(report)
            raise KeyboardInterrupt

        monkeypatch.setattr(import_command, "import_logs", import_logs)
        assert run(["import", str(tmp_path), "--db", str(tmp_path / "l.db")]) == 130
        return capsys.readouterr()

    return stop


def test_an_import_says_what_it_kept(stopped_import):
    read = FileReport(Path("a.jsonl"), "read", Recorded(turns=3))
    known = FileReport(Path("b.jsonl"), "unchanged")
    out, err = stopped_import(read, known, read)
    assert out == ""
    assert err == "stopped: 2 files kept, with 6 new turns; run it again for the rest.\n"
    assert stopped_import(known).err == "stopped: nothing was kept.\n"


def test_any_other_command_says_that_it_stopped(monkeypatch, capsys):
    def interrupted(*_words, **_more):
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.prices.GenaiPriceBook", interrupted)
    assert run(["prices", "gpt-5.5"]) == 130
    assert capsys.readouterr() == ("", "stopped\n")
