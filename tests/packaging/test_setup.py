"""The two commands on a fresh machine: what the Makefile, the pins and the CI script promise."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
TARGETS = ["run", "test", "check", "bench", "lint", "types", "format", "build", "clean"]


def make(folder, variables, *words):
    return subprocess.run(
        ["/usr/bin/env", "make", *words],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def fresh(tmp_path):
    folder = tmp_path / "fresh"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(REPO / name, folder)
    return folder


@pytest.fixture
def programs(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "make").symlink_to(shutil.which("make"))
    (folder / "awk").symlink_to(shutil.which("awk"))
    return folder


def program(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("words", [[], ["help"]])
def test_make_lists_every_target(fresh, clean_variables, words):
    done = make(fresh, clean_variables, *words)
    assert done.returncode == 0
    listed = {line.split()[1] for line in done.stdout.splitlines()}
    assert {*TARGETS} <= listed


def test_the_newest_python_that_runs_is_taken(fresh, programs, clean_variables):
    program(programs, "python3.13", "exit 127")
    program(programs, "python3.11", "exit 0")
    program(programs, "python3", "exit 0")
    done = make(fresh, clean_variables | {"PATH": str(programs)}, "-n", ".venv/.installed")
    assert "python3.11 -m venv" in done.stdout


def test_without_a_python_the_message_says_what_to_do(fresh, programs, clean_variables):
    program(programs, "python3", "exit 1")
    done = make(fresh, clean_variables | {"PATH": str(programs)}, "test")
    assert done.returncode == 2
    assert "no Python 3.11 or newer with venv runs" in done.stderr
    assert "make PYTHON=/path/to/python3" in done.stderr
    assert not (fresh / ".venv").exists()


def test_a_chosen_python_that_fails_is_named(fresh, clean_variables):
    done = make(fresh, clean_variables, "test", "PYTHON=/nowhere/python")
    assert done.returncode == 2
    assert "PYTHON='/nowhere/python'" in done.stderr


def test_the_environment_follows_the_requirements(fresh, clean_variables):
    stamp = fresh / ".venv" / ".installed"
    stamp.parent.mkdir()
    stamp.touch()
    assert make(fresh, clean_variables, "-q", ".venv/.installed").returncode == 0
    for name in ("pyproject.toml", "constraints.txt"):
        assert make(fresh, clean_variables, "-q", f"-W{name}", ".venv/.installed").returncode == 1


def test_check_runs_the_test_command_and_the_proof(clean_variables):
    done = make(REPO, clean_variables, "-n", "check")
    test = make(REPO, clean_variables, "-n", "test").stdout.splitlines()[-1]
    for line in ("ruff check .", "ruff format --check .", "lint-imports", "mypy", test):
        assert line in done.stdout
    assert "pytest tests/packaging" in done.stdout


def test_the_pins_are_plain_and_cover_every_requirement():
    lines = (REPO / "constraints.txt").read_text().splitlines()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][\w.]*", line)] == []
    pinned = {normal(line.split("==")[0]) for line in lines}
    assert len(pinned) == len(lines)
    extras = tomllib.loads((REPO / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    needed = {normal(re.match(r"[\w.-]+", need)[0]) for needs in extras.values() for need in needs}
    assert needed - {"compactuary"} <= pinned


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_no_set_up_file_names_a_registry():
    for name in ("Makefile", ".ci/run", "constraints.txt", "pyproject.toml", "hatch_build.py"):
        text = (REPO / name).read_text()
        assert not re.search(r"--(extra-)?index-url|--find-links|https?://", text), name


def test_ci_calls_the_check_with_a_callers_settings_removed(tmp_path, programs, clean_variables):
    clone = tmp_path / "clone"
    (clone / ".ci").mkdir(parents=True)
    shutil.copy(REPO / ".ci" / "run", clone / ".ci")
    (programs / "make").unlink()
    program(programs, "make", 'echo "$PWD $*" "<$PYTHONPATH$COMPACTUARY_DB>"; exit 3')
    for name in ("bash", "dirname"):
        (programs / name).symlink_to(shutil.which(name))
    variables = {"PATH": str(programs), "PYTHONPATH": "x", "COMPACTUARY_DB": "y"}
    command = [programs / "bash", clone / ".ci" / "run"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert done.stdout == f"{clone} check <>\n"
    (programs / "make").unlink()
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "make is missing" in done.stderr
