import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]


def test_the_command_writes_both_examples_with_nothing_installed(tmp_path):
    target = tmp_path / "new" / "folder"
    run = subprocess.run(
        [sys.executable, "-S", "-m", "examples", str(target)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "3346 turns" in run.stdout
    assert (target / "note_turns.csv").read_text(encoding="utf-8").count("\n") == 3347
    assert len(list(target.glob("projects/*/*.jsonl"))) == 12
