"""`hypertool exec` as a user runs it: one JSON object on stdout, the exit status, one clear error for bad input."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


def run(servers: Path, block: Path, *options: str) -> tuple[int, Any, str]:
    command = [sys.executable, "-m", "hypertool.cli", "exec", "--servers", str(servers), str(block), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


@pytest.fixture
def block(tmp_path: Path) -> Path:
    return tmp_path / "block.py"


def test_a_block_over_two_servers(servers_file: Path, block: Path) -> None:
    block.write_text(
        'one = call_tool("echo", "echo", {"text": "a"})["result"]\n'
        'two = call_tools([("other", "typed", {"rows": 2}), ("echo", "echo", {"text": "b"})])\n'
        'result = {"one": one, "two": [item["result"] for item in two]}\n'
    )
    status, output, _ = run(servers_file, block, "--trace")
    assert status == 0
    assert output["status"] is True
    assert output["result"] == {"one": "a", "two": [{"rows": [{"id": 0}, {"id": 1}]}, "b"]}
    assert [(call["server"], call["tool"], call["ok"]) for call in output["calls"]] == [
        ("echo", "echo", True),
        ("other", "typed", True),
        ("echo", "echo", True),
    ]


def test_only_the_servers_that_the_block_names_are_started(servers_file: Path, block: Path) -> None:
    block.write_text('result = call_tool("echo", "echo", {"text": "a"})["result"]')
    assert run(servers_file, block)[:2] == (0, {"status": True, "result": "a"})  # `broken` cannot start


def test_a_failing_block_is_an_observation_with_line_and_message(servers_file: Path, block: Path) -> None:
    block.write_text('x = 1\nresult = call_tool("echo", "fail", {"reason": "closed on Sunday"})\n')
    status, output, _ = run(servers_file, block)
    assert status == 1
    assert output["status"] is False
    assert output["error"]["kind"] == "tool"
    assert output["error"]["line"] == 2
    assert "closed on Sunday" in output["error"]["message"]


def test_a_limit_can_be_overridden(servers_file: Path, block: Path) -> None:
    block.write_text("import time\ntime.sleep(30)\nresult = 1\n")
    status, output, _ = run(servers_file, block, "--limit", "wall_s=1")
    assert (status, output["error"]["kind"]) == (1, "wall_limit")


@pytest.mark.parametrize(
    ("content", "options", "says"),
    [
        (b"", (), "the block is empty"),
        (b"\xff\xfe", (), "a block is UTF-8 text"),
        (b"x = 1 \0", (), "the block is binary"),
        (b"result = 1", ("--limit", "wal_s=1"), "Did you mean 'wall_s'?"),
        (b"result = 1", ("--limit", "wall_s=soon"), "expected float"),
    ],
)
def test_bad_input_is_one_error_and_exit_2(
    servers_file: Path, block: Path, content: bytes, options: tuple[str, ...], says: str
) -> None:
    block.write_bytes(content)
    status, output, error = run(servers_file, block, *options)
    assert (status, output) == (2, None)
    assert says in error
    assert "Traceback" not in error
