"""Nests every room under ``compactuary`` in a published wheel; an editable install stays flat."""

import ast
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.config import BuilderConfig
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "compactuary"


def nest_imports(source: str, path: str, rooms: list[str]) -> str:
    """Rewrite the line heads ``from <room>`` of one module to ``from compactuary.<room>``.

    Parameters
    ----------
    source : str
        The module's text. Examples in docstrings (``>>> from policy.cost import cost``) count too.
    path : str
        Where it was read, for the message.
    rooms : list of str
        The top-level packages that move under ``compactuary``.

    Returns
    -------
    str
        The text as the wheel carries it, with the same lines.

    Raises
    ------
    ValueError
        An import of a room stays flat, as ``import policy`` does: names the file and the line.
    """
    room = "|".join(rooms)
    head = re.compile(
        rf"^([ \t]*(?:(?:>>>|\.\.\.) )?from )(?=(?:{room})(?:\.[\w.]+)? import\b)", re.MULTILINE
    )
    nested = head.sub(rf"\1{PACKAGE}.", source)
    for node in ast.walk(ast.parse(nested, path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        for name in names:
            if name.partition(".")[0] in rooms:
                raise ValueError(
                    f"{path}:{node.lineno}: this import of `{name}` can't move under `{PACKAGE}`. "
                    f"Give it a line of its own, as `from {name} import ...`."
                )
    return nested


class NestRooms(BuildHookInterface[BuilderConfig]):
    """The wheel's build hook; its option ``rooms`` lists the packages to nest."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add every room's files to a standard wheel, at their nested places.

        Parameters
        ----------
        version : str
            ``standard``, or ``editable``, which is left alone.
        build_data : dict
            Hatchling's plan of the wheel; ``force_include`` grows by one entry a file.

        Raises
        ------
        ValueError
            An import of a room can't be rewritten.
        """
        if version != "standard":
            return
        rooms: list[str] = self.config["rooms"]
        folders = {str(Path(self.root, name)): name for name in (*rooms, PACKAGE)}
        self.staging = TemporaryDirectory()
        for file in self.build_config.builder.recurse_explicit_files(folders):
            inside = Path(file.relative_path)
            target = inside if inside.parts[0] == PACKAGE else PACKAGE / inside
            staged = Path(self.staging.name, target)
            staged.parent.mkdir(parents=True, exist_ok=True)
            content = Path(file.path).read_bytes()
            if inside.suffix == ".py":
                content = nest_imports(content.decode(), inside.as_posix(), rooms).encode()
            staged.write_bytes(content)
            build_data["force_include"][str(staged)] = target.as_posix()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the rewritten copies once the wheel holds them.

        Parameters
        ----------
        version, build_data, artifact_path
            What hatchling passes; only the version matters.
        """
        del build_data, artifact_path
        if version == "standard":
            self.staging.cleanup()
