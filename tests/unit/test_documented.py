"""Every command, option, endpoint and setting is in the docs."""

import re
import tomllib
from pathlib import Path

import pytest
import typer

from api import limits, logs, modes, settings
from api.app import create_app
from api.schemas import ShouldCompact
from cli.app import COMMANDS, make_app
from compactuary import endpoint
from ledger import database
from policy.price_overlay import PRICES_VARIABLE

ROOT = Path(__file__).parents[2]
CLI = (ROOT / "docs" / "cli.md").read_text()
API = (ROOT / "docs" / "api.md").read_text()
EVERYTHING = "\n".join(
    path.read_text() for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
)


def _leaves(command, path=()):
    inner = getattr(command, "commands", None)
    if inner is None:
        yield path, command
        return
    for name, one in inner.items():
        yield from _leaves(one, (*path, name))


LEAVES = list(_leaves(typer.main.get_command(make_app())))


def test_every_command_was_found():
    assert {path[0] for path, _ in LEAVES} == set(COMMANDS)


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=lambda part: str(part)[:20])
def test_every_command_and_option_is_documented(path, command):
    heading = CLI.split(f"\n## {path[0]}\n")
    assert len(heading) == 2, path
    section = heading[1].split("\n## ")[0]
    shared = CLI.split("\n## ")[0]
    assert f"compactuary {' '.join(path)}" in section
    options = {name for parameter in command.params for name in parameter.opts if "--" in name}
    assert options >= {"--db", "--json"}
    for name in sorted(options):
        assert re.search(rf"`{name}[ `=]", section + shared), (path, name)


def test_no_page_installs_from_an_index():
    """The package is on none: pip has to be given the clone."""
    installs = re.findall(r"pip install (?!\S*-)[\"']?([^\s\"'`]+)", EVERYTHING)
    assert len(installs) >= 8
    assert [one for one in installs if one.startswith("compactuary[")] == []


def test_every_room_has_its_row_in_the_house():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    rooms = [*project["tool"]["importlinter"]["root_packages"], "deploy"]
    table = (ROOT / "CONTRIBUTING.md").read_text()
    assert len(rooms) >= 11
    assert [
        room for room in rooms if not re.search(rf"^\| `{room}/` \|", table, re.MULTILINE)
    ] == []


def test_every_endpoint_is_documented():
    paths = create_app(settings.Settings()).openapi()["paths"]
    named = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert len(named) >= 13
    for method, path in sorted(named):
        assert f"`{method} {path}`" in API, (method, path)
    told = set(re.findall(r"`(GET|PUT|POST|DELETE|PATCH) (/[^`]*)`", API))
    assert told == named


def test_every_field_of_the_question_is_documented():
    for name in ShouldCompact.model_fields:
        assert re.search(rf"\b{name}\b", API), name


def test_every_setting_is_documented():
    names = {database.DB_VARIABLE, settings.REFRESH_VARIABLE, PRICES_VARIABLE}
    names |= {settings.LOG_VARIABLE, settings.LOG_QUEUE_VARIABLE, settings.LOG_DURABILITY_VARIABLE}
    names |= {settings.METRICS_VARIABLE, settings.TRACES_VARIABLE, modes.MODES_VARIABLE}
    names |= {limits.MAX_BODY_VARIABLE, limits.RATE_LIMIT_VARIABLE, limits.RATE_BURST_VARIABLE}
    names |= {logs.LOG_FORMAT_VARIABLE, logs.LOG_LEVEL_VARIABLE}
    names |= {endpoint.URL_VARIABLE, endpoint.KEY_VARIABLE}
    in_code = {
        name
        for room in ("api", "cli", "ledger", "policy", "compactuary", "estimator", "migrations")
        for file in (ROOT / room).rglob("*.py")
        for name in re.findall(r"[\"'](COMPACTUARY_[A-Z_]+)[\"']", file.read_text())
    }
    assert in_code == names
    for name in names:
        assert name in EVERYTHING
    assert str(settings.DEFAULT_PORT) in EVERYTHING
    assert f"{settings.DEFAULT_REFRESH_SECONDS}" in EVERYTHING
    assert f"{settings.DEFAULT_LOG_QUEUE}" in EVERYTHING
    assert f"{limits.DEFAULT_MAX_BODY_BYTES}" in EVERYTHING
