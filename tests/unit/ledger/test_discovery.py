"""Which files are logs, and in which order they are read."""

import pytest

from compactuary.errors import SourceError
from ledger.readers.discovery import log_files, usual_folders


def touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_a_folder_is_searched_through_in_the_order_of_names(tmp_path):
    wanted = [
        touch(tmp_path / "p" / "a.jsonl"),
        touch(tmp_path / "p" / "a" / "subagents" / "agent-1.jsonl"),
        touch(tmp_path / "p" / "b.jsonl.gz"),
        touch(tmp_path / "t.csv"),
        touch(tmp_path / "t2.csv.gz"),
        touch(tmp_path / "p" / "session.json"),
        touch(tmp_path / "p" / "task.traj.gz"),
    ]
    touch(tmp_path / "README.md")
    touch(tmp_path / "p" / "b.json5")
    assert set(log_files([tmp_path])) == set(wanted)
    assert log_files([tmp_path]) == sorted(log_files([tmp_path]))


def test_slices_come_in_their_order(tmp_path):
    for name in ("02", "00", "10", "01"):
        touch(tmp_path / f"{name}.jsonl")
    assert [path.stem for path in log_files([tmp_path])] == ["00", "01", "02", "10"]


def test_a_file_named_twice_is_read_once(tmp_path, monkeypatch):
    path = touch(tmp_path / "a.jsonl")
    monkeypatch.chdir(tmp_path)
    assert log_files([path, tmp_path, path.relative_to(tmp_path)]) == [path]


def test_a_file_named_by_itself_needs_no_known_ending(tmp_path):
    path = touch(tmp_path / "session.log")
    assert log_files([path]) == [path]


@pytest.mark.parametrize("made", [False, True])
def test_nothing_to_read_is_an_error_that_names_the_path(tmp_path, made):
    path = tmp_path / "logs"
    if made:
        path.mkdir()
    with pytest.raises(SourceError) as caught:
        log_files([path])
    assert caught.value.where == str(path)
    assert caught.value.remedy


def test_the_usual_folders_are_those_that_exist(tmp_path):
    home, configured = tmp_path / "home", tmp_path / "config"
    names = {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(configured)}
    assert usual_folders(names) == []
    (home / ".claude" / "projects").mkdir(parents=True)
    assert usual_folders(names) == [home / ".claude" / "projects"]
    (configured / "projects").mkdir(parents=True)
    assert usual_folders(names) == [configured / "projects", home / ".claude" / "projects"]
    names["CLAUDE_CONFIG_DIR"] = str(home / ".claude")
    assert usual_folders(names) == [home / ".claude" / "projects"]


def test_every_agent_has_its_usual_folders(tmp_path):
    wanted = [
        tmp_path / name
        for name in (
            ".codex/sessions",
            ".codex/archived_sessions",
            ".pi/agent/sessions",
            ".omp/agent/sessions",
            ".gemini/tmp",
        )
    ]
    for folder in wanted:
        folder.mkdir(parents=True)
    assert usual_folders({"HOME": str(tmp_path)}) == wanted
