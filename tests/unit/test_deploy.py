"""The unit and the container file start commands that there are, and as nobody in particular."""

import re
import shlex
from pathlib import Path

import typer

from api.app import create_app
from api.settings import DEFAULT_PORT, Settings
from cli.app import make_app

DEPLOY = Path(__file__).parents[2] / "deploy"
UNIT = (DEPLOY / "compactuary.service").read_text()
CONTAINER = (DEPLOY / "Containerfile").read_text()


def _understood(words):
    """Parse a command line as the command would, without running it."""
    command = typer.main.get_command(make_app())
    while getattr(command, "commands", None):
        command = command.commands[words.pop(0)]
    command.make_context("compactuary", words)


def test_the_unit_starts_commands_that_there_are():
    lines = re.findall(r"^Exec\w+=\S+/compactuary (.+)$", UNIT, re.MULTILINE)
    assert [line.split()[0] for line in lines] == ["db", "serve"]
    for line in lines:
        _understood(shlex.split(line))
    assert "DynamicUser=yes" in UNIT


def test_the_image_that_the_page_runs_is_built_there_as_the_file_says():
    (build,) = re.findall(
        r"^# Build from the top folder: podman (build .+)$", CONTAINER, re.MULTILINE
    )
    page = (DEPLOY.parent / "docs" / "operations.md").read_text()
    assert page.index(f"podman {build.rstrip('.').rstrip()} .") < page.index("podman run")


def test_the_container_serves_as_a_user_of_its_own_and_asks_itself():
    words = re.search(r"^CMD \[(.+)\]$", CONTAINER, re.MULTILINE)[1]
    _understood([word.strip().strip('"') for word in words.split(",")])
    assert re.search(r"^USER (?!root)\w+$", CONTAINER, re.MULTILINE)
    asked = re.search(r"http://127\.0\.0\.1:(\d+)(/\w+)", CONTAINER)
    assert int(asked[1]) == DEFAULT_PORT
    assert asked[2] in create_app(Settings()).openapi()["paths"]
    assert f"EXPOSE {DEFAULT_PORT}" in CONTAINER
