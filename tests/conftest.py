"""Shared parts: a servers file for the echo server, one jail per module, and a token counter without a model."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = TESTS.parent


@pytest.fixture
def servers_file(tmp_path: Path) -> Path:
    """Two echo servers, `echo` and `other`, and one that cannot start."""
    script = str(TESTS / "echo_server.py")
    entry = {"command": sys.executable, "args": [script]}
    broken = {"command": sys.executable, "args": [script, "broken"]}
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"echo": entry, "other": entry, "broken": broken}}))
    return path
