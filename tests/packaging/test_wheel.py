import ast
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from compactuary.version import VERSION

REPO = Path(__file__).parents[2]
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text())
ROOMS = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]["custom"]["rooms"]


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def files(built) -> dict[str, bytes]:
    return contents(built.wheel)


def test_its_only_top_level_name_is_compactuary(files):
    tops = {name.split("/")[0] for name in files}
    assert tops == {"compactuary", f"compactuary-{VERSION}.dist-info"}


def test_the_wheel_of_the_sdist_is_the_same(files, built):
    assert contents(built.wheel_of_sdist) == files


def test_nothing_compiled_goes_along(files):
    assert not [name for name in files if "__pycache__" in name or name.endswith(".pyc")]


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_of_a_room_is_nested(files, room):
    folder = REPO / room
    here = {
        f"compactuary/{path.relative_to(REPO).as_posix()}"
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    there = {name for name in files if name.startswith(f"compactuary/{room}/")}
    assert there == here


@pytest.mark.parametrize(
    "name",
    ["estimator/data/standard_table.csv", "migrations/versions/2026_11_30_0002.py"],
)
def test_what_the_first_decision_needs_goes_along(files, name):
    assert f"compactuary/{name}" in files


def test_other_files_than_python_keep_their_bytes(files):
    data = [name for name in files if name.startswith("compactuary/") and name[-3:] != ".py"]
    assert "compactuary/py.typed" in data
    for name in data:
        flat = REPO / name
        origin = flat if flat.exists() else REPO / name.removeprefix("compactuary/")
        assert files[name] == origin.read_bytes(), name


def test_no_module_imports_a_room_flat(files):
    flat = []
    for name in (name for name in files if name.endswith(".py")):
        for node in ast.walk(ast.parse(files[name])):
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported = [str(node.module)]
            else:
                continue
            flat += [(name, node.lineno) for each in imported if each.split(".")[0] in ROOMS]
    assert flat == []


def test_the_base_needs_nothing(files):
    (name,) = (name for name in files if name.endswith(".dist-info/METADATA"))
    needs = message_from_bytes(files[name]).get_all("Requires-Dist")
    assert needs
    assert [need for need in needs if "extra ==" not in need] == []


def test_the_lists_of_rooms_agree():
    tool = PROJECT["tool"]
    shipped = {*ROOMS, "compactuary"}
    sdist = tool["hatch"]["build"]["targets"]["sdist"]["include"]
    folders = {name.strip("/") for name in sdist if (REPO / name.strip("/")).is_dir()}
    assert folders == shipped
    assert set(tool["mypy"]["packages"]) == shipped
    assert set(tool["importlinter"]["root_packages"]) == shipped
