"""The wheel and the sdist, built once, and environments that hold nothing of this folder."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
SETTINGS = ("PYTHON", "COMPACTUARY_", "XDG_", "MAKE", "MFLAGS", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class Built:
    wheel: Path
    sdist: Path
    wheel_of_sdist: Path


@dataclass(frozen=True, slots=True)
class Environment:
    folder: Path
    variables: dict[str, str]

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def compactuary(self) -> Path:
        return self.folder / "bin" / "compactuary"

    def run(self, *words, cwd):
        return subprocess.run(
            [*map(str, words)],
            cwd=cwd,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )


def build(tree: Path, out: Path, *kinds: str) -> None:
    command = [sys.executable, "-m", "build", "--no-isolation", *kinds, "--outdir", str(out)]
    done = subprocess.run([*command, str(tree)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def built(tmp_path_factory) -> Built:
    out = tmp_path_factory.mktemp("dist")
    build(REPO, out, "--sdist", "--wheel")
    (sdist,) = out.glob("*.tar.gz")
    (wheel,) = out.glob("*.whl")
    with tarfile.open(sdist) as archive:
        # Python 3.11.2, Debian 12's, knows no filter; later ones warn without.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(out / "unpacked")
    (tree,) = (out / "unpacked").iterdir()
    build(tree, out / "again", "--wheel")
    (wheel_of_sdist,) = (out / "again").glob("*.whl")
    return Built(wheel, sdist, wheel_of_sdist)


@pytest.fixture(scope="session")
def clean_variables(tmp_path_factory) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
    return kept | {"HOME": str(tmp_path_factory.mktemp("home")), "NO_COLOR": "1"}


def install(wheel: Path, folder: Path, variables: dict[str, str]) -> Environment:
    venv.create(folder, with_pip=False)
    environment = Environment(folder, variables)
    pip = [sys.executable, "-m", "pip", "--python", environment.python, "install", "-q"]
    done = environment.run(*pip, "--no-index", "--no-deps", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    return environment


@pytest.fixture(scope="session")
def bare(built, tmp_path_factory, clean_variables) -> Environment:
    """Hold the wheel and no extra."""
    return install(built.wheel, tmp_path_factory.mktemp("bare") / "venv", clean_variables)


@pytest.fixture(scope="session")
def full(built, tmp_path_factory, clean_variables) -> Environment:
    """Hold the wheel, and see every package of the running environment."""
    environment = install(built.wheel, tmp_path_factory.mktemp("full") / "venv", clean_variables)
    (site_packages,) = environment.folder.glob("lib/python*/site-packages")
    here = sysconfig.get_paths()
    # A path line adds the folder only: the .pth of the editable install in there is not read.
    lines = dict.fromkeys([here["purelib"], here["platlib"]])
    (site_packages / "running.pth").write_text("\n".join(lines) + "\n")
    return environment


@pytest.fixture(scope="session")
def rooms() -> list[str]:
    build_settings = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    return build_settings["targets"]["wheel"]["hooks"]["custom"]["rooms"]


@pytest.fixture(scope="session")
def decoys(rooms, tmp_path_factory) -> Path:
    """Give a working folder whose own packages have the names of our rooms."""
    folder = tmp_path_factory.mktemp("decoys")
    for room in rooms:
        (folder / room).mkdir()
        (folder / room / "__init__.py").write_text(f"raise ImportError('the decoy {room}')\n")
    return folder
