"""Data to try the project with: the note's table of turns and a generated Claude Code tree.

Standard library only, so that it runs before anything is installed; not part of the wheel.
"""
