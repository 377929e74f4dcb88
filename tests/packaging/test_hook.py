import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
ROOMS = ["policy", "ledger"]
PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "compactuary"
version = "0"
[tool.hatch.build]
dev-mode-dirs = ["."]
[tool.hatch.build.targets.wheel]
packages = ["compactuary"]
[tool.hatch.build.targets.wheel.hooks.custom]
path = "hatch_build.py"
rooms = ["policy", "ledger"]
"""


@pytest.fixture(scope="module")
def nest_imports():
    spec = importlib.util.spec_from_file_location("hatch_build", REPO / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.nest_imports


@pytest.mark.parametrize(
    ("flat", "nested"),
    [
        ("from policy import cost\n", "from compactuary.policy import cost\n"),
        ("from policy.cost import C\n", "from compactuary.policy.cost import C\n"),
        ("def f():\n    from ledger.a.b import c\n", None),
        ("from policy.cost import (\n    C,\n)\n", None),
        ('"""An example.\n\n>>> from policy.cost import C\n"""\n', None),
    ],
)
def test_a_line_head_is_rewritten(nest_imports, flat, nested):
    expected = nested or re.sub("from (policy|ledger)", r"from compactuary.\1", flat)
    assert nest_imports(flat, "room/file.py", ROOMS) == expected


@pytest.mark.parametrize(
    "text",
    [
        "from policyholder.cost import C\n",
        "from .policy import cost\n",
        "from compactuary.policy import cost\n",
        "import policyholder\n",
        '"""Goes\nfrom policy to ledger,\nimport policy is prose here."""\n',
        "SQL = 'select * from ledger.calls'\n",
        "a = 1\r\nb = 2\r\n",
    ],
)
def test_all_other_text_stays(nest_imports, text):
    assert nest_imports(text, "room/file.py", ROOMS) == text


@pytest.mark.parametrize(
    "line",
    [
        "import policy",
        "import policy.cost as cost",
        "import os, ledger",
        "if True: from policy import cost",
        "from policy \\\n    import cost",
    ],
)
def test_an_import_that_would_stay_flat_is_refused(nest_imports, line):
    with pytest.raises(ValueError, match=r"^room/file\.py:3: .*`(policy|ledger)"):
        nest_imports(f"a = 1\n\n{line}\n", "room/file.py", ROOMS)


def tiny_tree(folder: Path, module: str) -> Path:
    for name in ("compactuary", "policy"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("")
    (folder / "policy" / "cost.py").write_text(module)
    (folder / "pyproject.toml").write_text(PROJECT)
    shutil.copy(REPO / "hatch_build.py", folder)
    return folder


def build_wheel(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", str(tree)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_build_stops_at_the_file_and_line(tmp_path):
    done = build_wheel(tiny_tree(tmp_path, '"""Costs."""\n\nimport policy\n'))
    assert done.returncode != 0
    assert "policy/cost.py:3: this import of `policy`" in done.stdout + done.stderr
    assert list(tmp_path.glob("dist/*.whl")) == []


def test_a_room_that_does_not_exist_yet_is_no_error(tmp_path):
    done = build_wheel(tiny_tree(tmp_path, "from policy import VALUE\n"))
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("dist/*.whl")
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read("compactuary/policy/cost.py").decode()
        assert text == "from compactuary.policy import VALUE\n"
        assert not [name for name in archive.namelist() if name.startswith("policy")]


def test_an_editable_wheel_is_a_plain_path_entry(tmp_path):
    tree = tiny_tree(tmp_path, "import policy\n")
    script = "from hatchling.build import build_editable; print(build_editable('dist'))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tree, capture_output=True, text=True, check=True
    )
    with zipfile.ZipFile(tree / "dist" / done.stdout.split()[-1]) as archive:
        (entry,) = (name for name in archive.namelist() if ".dist-info/" not in name)
        assert entry.endswith(".pth")
        assert Path(archive.read(entry).decode().strip()).samefile(tree)
