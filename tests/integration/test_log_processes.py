"""Logs read by forks of this process: the ledger of one process, whoever is killed."""

import json
import subprocess
import sys
import textwrap

import pytest

from compactuary import log_processes as module
from compactuary.log_processes import log_processes
from examples.claude_code_tree import write_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are used on Linux alone")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    write_tree(folder, sessions=16)
    return folder


def run(code, *words):
    """Run code in an interpreter of its own: a process with threads must not be forked."""
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_command_says_the_same_with_and_without(tree):
    told = [
        run(
            f"""
            import os, sys
            from compactuary import log_parts, log_processes
            from compactuary.__main__ import main

            log_parts._LEAST_BYTES = 1
            log_processes._LEAST_BYTES = {least}
            os.sched_getaffinity = lambda _: {{0, 1}}
            raise SystemExit(main(["audit", sys.argv[1], "--json"]))
            """,
            tree,
        )
        for least in (0, 10**12)
    ]
    assert told[0] == told[1]
    assert len(json.loads(told[0])["compactions"]) > 5


def test_what_a_killed_process_was_at_is_done_here():
    told = run(
        """
        import json, os, signal
        from compactuary.log_processes import LogProcesses

        here = os.getpid()

        def double(number):
            if number == 2 and os.getpid() != here:
                os.kill(os.getpid(), signal.SIGKILL)
            return 2 * number, os.getpid() == here

        done = []
        found = list(LogProcesses(2).map(double, [1, 2, 3, 4], lambda *told: done.append(told)))
        print(json.dumps([found, done]))
        """
    )
    found, done = json.loads(told)
    assert [number for number, _ in found] == [2, 4, 6, 8]
    assert found[1][1]
    assert done == [[1, 4], [2, 4], [3, 4], [4, 4]]


@pytest.mark.parametrize("problem", ["small", "one core", "threads", "another system"])
def test_one_process_reads_where_more_would_not_help(tree, monkeypatch, problem):
    monkeypatch.setattr(module, "_LEAST_BYTES", 10**12 if problem == "small" else 0)
    cores = {0} if problem == "one core" else {0, 1, 2}
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: cores)
    running = 2 if problem == "threads" else 1
    monkeypatch.setattr(module.threading, "active_count", lambda: running)
    if problem == "another system":
        monkeypatch.setattr(module.sys, "platform", "darwin")
    assert log_processes([tree]) is None


def test_there_is_one_a_core_and_four_at_most(tree, monkeypatch):
    monkeypatch.setattr(module, "_LEAST_BYTES", 0)
    monkeypatch.setattr(module.threading, "active_count", lambda: 1)
    for cores, count in ((2, 2), (3, 3), (64, 4)):
        monkeypatch.setattr(module.os, "sched_getaffinity", lambda _, n=cores: set(range(n)))
        assert log_processes([tree]).count == count


def test_a_compressed_log_counts_for_what_is_in_it(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LEAST_BYTES", 400)
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(module.threading, "active_count", lambda: 1)
    (tmp_path / "a.jsonl").write_bytes(b" " * 100)
    assert log_processes([tmp_path]) is None
    (tmp_path / "b.jsonl.gz").write_bytes(b" " * 60)
    assert log_processes([tmp_path]).count == 2
