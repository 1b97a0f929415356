"""What must stay true of the repository itself: layers, light imports, script names, pins."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(path for folder in ("train", "eval", "scripts") for path in (ROOT / folder).glob("*.py"))


def test_layers_hold() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_importing_the_core_is_light_and_silent() -> None:
    code = (
        "import sys, hypertool; "
        "print([m for m in ('torch', 'mcp', 'wandb', 'transformers', 'openai') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_shadows_nothing_and_imports_no_sibling(path: Path) -> None:
    stems = [script.stem for script in SCRIPTS]
    assert stems.count(path.stem) == 1
    spec = importlib.util.find_spec(path.stem)
    assert spec is None or spec.origin is None or not Path(spec.origin).is_relative_to(sys.prefix), (
        f"{path.stem} is also an installed module"
    )
    assert path.stem not in sys.stdlib_module_names
    imported = set(re.findall(r"^\s*(?:from|import)\s+(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))
    assert not imported & {script.stem for script in SCRIPTS if script != path}


def pins(name: str) -> dict[str, str]:
    found = {}
    for line in (ROOT / name).read_text(encoding="utf-8").split("\n"):
        match = re.match(r"([\w.-]+)(?:\[[\w,-]+\])?==([\w.]+)", line)
        if match:
            found[match.group(1).lower()] = match.group(2)
    return found


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-cpu.txt"])
def test_every_dependency_is_pinned_within_its_range(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = pins(name)
    for text in project["dependencies"]:
        requirement = Requirement(text)
        assert requirement.name in pinned, f"{requirement.name} is not pinned in {name}"
        assert pinned[requirement.name] in requirement.specifier


def test_both_environments_agree_where_they_meet() -> None:
    gpu, cpu = pins("requirements.txt"), pins("requirements-cpu.txt")
    assert {name: (gpu[name], cpu[name]) for name in gpu.keys() & cpu.keys() if gpu[name] != cpu[name]} == {}
