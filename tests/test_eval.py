"""`eval/run.py` as a process: an interrupt costs at most the episodes in flight and leaves no process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hypertool import trajectory

ROOT = Path(__file__).parent.parent
COMMAND = [sys.executable, "eval/run.py", "--model", "scripted", "--arm", "react", "worlds=repository", "n=66"]


def members(session: int) -> list[str]:
    """Command names of the living processes of a session."""
    names = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text()
        except OSError:
            continue
        fields = status.rsplit(")", 1)[1].split()
        if int(fields[3]) == session and fields[0] != "Z":
            names.append(status)
    return names


@pytest.mark.parametrize("blow", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, blow: signal.Signals) -> None:
    command = [*COMMAND, f"results={tmp_path}"]
    first = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("**/trajectories.jsonl")) and time.monotonic() < deadline:
        assert first.poll() is None, first.stderr
        time.sleep(0.05)
    os.kill(first.pid, blow)
    _, error = first.communicate(timeout=60)
    if blow is signal.SIGINT:
        assert first.returncode == 130
        assert "finished episodes are kept" in " ".join(error.split())
    while members(first.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert members(first.pid) == []
    (path,) = tmp_path.glob("**/trajectories.jsonl")
    before = [row.key for row in trajectory.read(path)]
    assert 0 < len(before) < 66

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    keys = [row.key for row in trajectory.read(path)]
    assert keys[: len(before)] == before
    assert len(keys) == len(set(keys)) == 66
    metrics = json.loads(path.with_name("metrics.json").read_text())
    assert (metrics["n"], metrics["passed"]) == (66, 66)
