"""Printed commands: every one names files, targets and flags that exist, and the cheap ones are run as printed."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from hypertool import tables
from hypertool.errors import ConfigError

ROOT = Path(__file__).parent.parent
HYPERTOOL = str(Path(sys.executable).with_name("hypertool"))
PAGES = ["README.md", "docs/reproduce.md", "docs/worlds.md"]
MADE = ("models/", "data/", "runs/", ".venv/", "block.py")  # appear when the commands run


def printed_commands() -> list[str]:
    """Command lines from fenced bash blocks, table cells that begin with make, and YAML heads."""
    found: list[str] = []
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for body in re.findall(r"```bash\n(.*?)```", text, re.DOTALL):
            body = re.sub(r"cat > .*?\nBLOCK\n", "", body, flags=re.DOTALL)
            found += [line.split("  #")[0].strip() for line in body.split("\n") if line.strip()]
        found += re.findall(r"`(make [^`]*)`", text)
    for path in sorted((ROOT / "configs").glob("*/*.yaml")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            match = re.match(r"#\s+((?:python|accelerate|make) .*)", line)
            if match:
                found.append(match.group(1).split("  #")[0].strip())
    return sorted(set(found))


COMMANDS = printed_commands()


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 15


@pytest.mark.parametrize("command", COMMANDS)
def test_a_printed_command_names_what_exists(command: str) -> None:
    words = shlex.split(command)
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert len(words) == 1 or words[1] in targets or "=" in words[1]
        for word in words[2:]:
            name, _, value = word.partition("=")
            assert f"$({name})" in (ROOT / "Makefile").read_text(encoding="utf-8"), name
            if name == "BENCH":
                assert (ROOT / f"configs/eval/{value}.yaml").exists()
            if name == "CONFIG":
                assert (ROOT / value).exists()
        return
    script = next((word for word in words if word.endswith((".py", ".sh"))), None)
    for word in words:
        if "/" in word and "://" not in word and not word.startswith((*MADE, "-")) and "=" not in word:
            assert (ROOT / word).exists(), word
    if script and (ROOT / script).exists():
        source = (ROOT / script).read_text(encoding="utf-8")
        after = words[words.index(script) + 1 :]
        for flag in (word.split("=")[0] for word in after if word.startswith("--")):
            known = flag in source or flag[2:].replace("-", "_") in source
            assert known or script.endswith("sft.py"), f"{script} has no {flag}"


def test_the_tree_in_the_readme_is_the_tree_on_disk() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = re.search(r"```text\n(.*?)```", text[text.index("## The tree") :], re.DOTALL)
    assert tree
    rows = dict(re.findall(r"^(\w+)/\s+(.*)$", tree.group(1), re.MULTILINE))
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folders = {line.split("/")[0] for line in tracked.split("\n") if "/" in line and not line.startswith(".")}
    assert set(rows) == folders
    on_disk = {path.name for path in (ROOT / "scripts").iterdir() if path.is_file()}
    assert set(re.findall(r"[\w.]+\.(?:py|sh)", rows["scripts"])) == on_disk


def make(*words: str, timeout: float = 600) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=timeout)


def test_make_lists_its_targets() -> None:
    done = make()
    assert done.returncode == 0
    for target in ("demo", "test", "check", "data", "train", "serve", "eval", "report"):
        assert f"make {target} " in done.stdout


def test_make_eval_without_a_model_says_what_to_type() -> None:
    done = make("eval")
    assert done.returncode != 0
    assert "MODEL is not set. Try: make eval MODEL=scripted" in done.stderr


def test_make_eval_scripted_in_one_arm(tmp_path: Path) -> None:
    done = make("eval", "MODEL=scripted", "ARM=react", "WORLD=repository", "N=11", f"ARGS=results={tmp_path}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "11 of 11" in done.stdout
    (metrics,) = tmp_path.glob("offline/scripted/react-*/metrics.json")
    assert metrics.with_name("config.json").exists()
    done = make("report", f"ARGS=--results {tmp_path}")
    assert done.returncode == 0, done.stderr
    assert "11 of 11" in done.stdout
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| success | 1.00 [0.74, 1.00]; 11 of 11 |" in page
    assert "Wilson 95 %" in page


def test_runs_on_different_tasks_are_not_put_into_one_table(tmp_path: Path) -> None:
    for arm, tasks in (("react", "aaa"), ("hypertool", "bbb")):
        folder = tmp_path / arm
        folder.mkdir()
        config = {"model": "m", "arm": arm, "tasks_hash": tasks, "benchmark": "b", "seed": 0}
        source = {"commit": "c", "dirty": False, "date": "2026-12-01"}
        (folder / "config.json").write_text(json.dumps({"config": config, "provenance": source}))
        (folder / "metrics.json").write_text("{}")
    runs = [run for run in (tables.read_finished(tmp_path / arm) for arm in ("react", "hypertool")) if run]
    with pytest.raises(ConfigError, match="differ in tasks_hash"):
        tables.check_comparable(runs)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["ARM=raect"], "Did you mean 'react'?"),
        (["ARGS=trails=2"], "Did you mean 'trials'?"),
        (["WORLD=locaton"], "did you mean 'location'?"),
        (["ARGS=templates=newest_file"], "Did you mean 'newest_files'?"),
    ],
)
def test_bad_input_to_eval_is_one_line(words: list[str], says: str, tmp_path: Path) -> None:
    done = (
        make("eval", "MODEL=scripted", *words)
        if "ARGS" in words[0]
        else make("eval", "MODEL=scripted", *words, f"ARGS=results={tmp_path}")
    )
    assert done.returncode != 0
    assert says in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_a_model_that_is_none_is_refused_at_once(tmp_path: Path) -> None:
    done = make("eval", "MODEL=no/such/folder", f"ARGS=results={tmp_path}")
    assert "is neither 'scripted', a URL nor a checkpoint folder" in " ".join(done.stderr.split())
    (tmp_path / "empty").mkdir()
    done = make("eval", f"MODEL={tmp_path / 'empty'}", f"ARGS=results={tmp_path}")
    assert done.returncode != 0
    assert not list(tmp_path.glob("offline"))


def test_the_block_of_the_readme_runs_as_printed(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    match = re.search(r"cat > block.py <<'BLOCK'\n(.*?)BLOCK\n(.*?hypertool exec.*?)\n", text, re.DOTALL)
    assert match
    block = tmp_path / "block.py"
    block.write_text(match.group(1))
    command = shlex.split(match.group(2).replace("block.py", str(block)).replace(".venv/bin/hypertool", HYPERTOOL))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    observation = json.loads(done.stdout)
    assert observation["status"] is True
    assert "main" in observation["result"]


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_make_demo_walks_the_whole_path(tmp_path: Path) -> None:
    done = make("demo", f"ARGS=--smoke --out {tmp_path}", timeout=1500)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    assert "serve and evaluate, trained" in done.stdout
    assert "smollm2-135m trained" in done.stdout
    assert len(list(tmp_path.glob("seed0/results/offline/scripted/*/metrics.json"))) == 3
    assert len(list(tmp_path.glob("seed0/results/demo/*/*/metrics.json"))) == 1
    assert (tmp_path / "seed0/data/demo/card.json").exists()
