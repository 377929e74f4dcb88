"""Logs read by forks of this process: the ledger of one process, whoever is killed."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import suppress

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


def test_whoever_dies_whenever_all_is_done():
    told = run(
        """
        import json, os, random
        from compactuary.log_processes import LogProcesses

        here = os.getpid()

        def dying(share, raises):
            def double(number):
                if os.getpid() != here and random.Random(number).random() < share:
                    if raises:
                        raise MemoryError
                    os._exit(1)
                return 2 * number
            return double

        print(json.dumps([
            list(LogProcesses(3).map(dying(share, raises), range(400)))
            for share in (0, 0.01, 0.5, 1) for raises in (False, True)
        ]))
        """
    )
    assert json.loads(told) == [list(range(0, 800, 2))] * 8


def test_a_process_killed_in_the_middle_of_an_answer_is_replaced():
    told = run(
        """
        import os, signal, threading
        from compactuary.log_processes import LogProcesses

        here = os.getpid()

        class Long:
            # Its last part is never sent: the process is killed with the pipe half full.
            def __reduce__(self):
                if os.getpid() != here:
                    os.write(pipe(), (10**6).to_bytes(4, "big") + bytes(10_000))
                    os.kill(os.getpid(), signal.SIGKILL)
                return Long, ()

        def pipe():
            # The only socket that a reader has.
            return next(
                int(name) for name in os.listdir("/proc/self/fd")
                if os.path.exists(f"/proc/self/fd/{name}")
                and os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
            )

        found = list(LogProcesses(2).map(lambda _: Long(), [1, 2, 3]))
        print(len(found), {type(one).__name__ for one in found})
        """
    )
    assert told == "3 {'Long'}\n"


def test_where_no_process_can_be_made_the_first_does_all():
    told = run(
        """
        import os
        from compactuary.log_processes import LogProcesses

        def fork(real=os.fork, begun=[]):
            begun.append(1)
            if len(begun) > allowed:
                raise BlockingIOError("no more processes")
            return real()

        os.fork = fork
        for allowed in (0, 1, 9):
            fork.__defaults__[1].clear()
            found = list(LogProcesses(2).map(lambda number: (number, os.getpid()), range(9)))
            print([number for number, _ in found] == list(range(9)),
                  os.getpid() in {pid for _, pid in found})
        """
    )
    assert told.split() == ["True", "True", "True", "False", "True", "False"]


def test_what_a_call_raises_is_raised():
    told = run(
        """
        from compactuary.log_processes import LogProcesses

        found = LogProcesses(2).map(lambda number: 6 // number, [3, 2, 0, 1])
        print(next(found), next(found))
        try:
            next(found)
        except ZeroDivisionError as error:
            print(error)
        print(list(LogProcesses(2).map(abs, [])))
        """
    )
    assert told.split("\n") == ["2 3", "integer division or modulo by zero", "[]", ""]


#: Its two readers say that they are at work, and would be for minutes. It begins as in a terminal:
#: whoever runs the tests in the background ignores SIGINT.
STUCK = """
    import os, signal, sys, time
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from compactuary.log_processes import LogProcesses

    def stay(number):
        os.write(1, b"%d\\n" % os.getpid())
        time.sleep(300)

    list(LogProcesses(2).map(stay, [1, 2, 3]))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("whom", ["the first", "all"])
def test_no_reader_outlives_the_first_process(how, whom):
    command = [sys.executable, "-c", textwrap.dedent(STUCK)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as first:
        try:
            readers = {int(first.stdout.readline()) for _ in range(2)}
            (os.killpg if whom == "all" else os.kill)(first.pid, how)
            # To its end: until the last process that holds the pipes is gone.
            more, told = first.communicate(timeout=60)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(first.pid, signal.SIGKILL)
    assert first.returncode == -how
    assert more == ""
    assert len(readers - {first.pid}) == 2
    assert told.count("Traceback") == told.count("KeyboardInterrupt") == (how == signal.SIGINT)


def test_readers_end_when_nobody_wants_the_rest():
    told = run(
        """
        import os, time
        from multiprocessing import active_children
        from compactuary.log_processes import LogProcesses

        def stay(number):
            time.sleep(300 * number)
            return number

        found = LogProcesses(2).map(stay, [0, 1, 1, 1])
        print(next(found), len(active_children()))
        found.close()
        print(len(active_children()))
        """
    )
    assert told.split() == ["0", "2", "0"]


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
