"""Write the example data: ``python -m examples DIR``.

``DIR/note_turns.csv`` is the note's table of turns, ``DIR/projects/`` a small Claude Code tree.
"""

import argparse
from pathlib import Path

from examples.claude_code_tree import write_tree
from examples.note_table import write_note_table


def main() -> None:
    """Write both into the folder given on the command line."""
    parser = argparse.ArgumentParser(prog="python -m examples", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="made if missing")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    turns = write_note_table(folder / "note_turns.csv")
    tree = write_tree(folder)
    print(f"{folder / 'note_turns.csv'}: {turns} turns")
    print(f"{folder / 'projects'}: {tree.sessions} sessions, {len(tree.turns)} turns")


if __name__ == "__main__":
    main()
