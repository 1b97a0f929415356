"""Serving: an incomplete model is refused before anything starts, and a real vLLM answers and goes away."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import openai
import pytest

from hypertool.prompts import BLOCK_FUNCTION, CHAT_TEMPLATE

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "models/smollm2-135m-instruct"
PYTHON = Path(os.environ.get("HYPERTOOL_SERVE_PYTHON", ROOT / ".serve/bin/python"))


def serve(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "scripts/serve.py", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | environment, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture
def complete(tmp_path: Path) -> Path:
    """A folder with every file that serve.py looks for, all empty."""
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "chat_template.jinja").write_text(CHAT_TEMPLATE.read_text())
    return tmp_path


@pytest.mark.parametrize(
    "missing", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors", "chat_template.jinja"]
)
def test_an_incomplete_model_is_refused(complete: Path, missing: str) -> None:
    (complete / missing).unlink()
    out, err = (server := serve("--model", str(complete))).communicate(timeout=60)
    assert server.returncode == 2
    assert out == ""
    assert err.startswith(f"serve: {complete}: ")
    assert ("weights" if missing == "model.safetensors" else missing) in err
    assert len(err.splitlines()) == 1


def test_a_missing_environment_and_a_taken_port_are_named(complete: Path) -> None:
    server = serve("--model", str(complete), HYPERTOOL_SERVE_PYTHON="/nowhere/python")
    assert "/nowhere/python: no such interpreter" in server.communicate(timeout=60)[1]
    assert server.returncode == 2
    server = serve("--model", str(complete), HYPERTOOL_SERVE_PYTHON=sys.executable)
    assert "vLLM is not installed there" in server.communicate(timeout=60)[1]
    missing = serve("--model", "models/nowhere")
    assert "models/nowhere: no such folder" in missing.communicate(timeout=60)[1]
    if PYTHON.is_file():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            server = serve("--model", str(complete), "--port", str(taken.getsockname()[1]))
            assert "is taken" in server.communicate(timeout=60)[1]


def children(pid: int) -> list[int]:
    """All living descendants."""
    try:
        direct = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
    return direct + [grand for child in direct for grand in children(child)]


@pytest.mark.slow
def test_vllm_answers_with_tools_and_leaves_nothing_behind() -> None:
    assert PYTHON.is_file(), "no .serve environment: run `make setup-serve`"
    assert MODEL.is_dir(), "no small model: run `make setup`"
    server = serve("--model", str(MODEL), "--port", "0")
    try:
        assert server.stdout is not None
        ready = server.stdout.readline()
        assert ready.startswith("READY http://127.0.0.1:"), server.communicate()[1][-3000:]
        client = openai.OpenAI(base_url=ready.split()[1], api_key="none", timeout=120)
        assert [model.id for model in client.models.list()] == [str(MODEL)]
        call: dict[str, Any] = {"name": "hypertool", "arguments": json.dumps({"code": "result = 'é'"})}
        reply = client.chat.completions.create(
            model=str(MODEL),
            messages=[
                {"role": "system", "content": "Use the tool."},
                {"role": "user", "content": "Say é."},
                {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "type": "function", "function": call}]},  # type: ignore[list-item,typeddict-item]
                {"role": "tool", "content": '{"status": true, "result": "é"}', "tool_call_id": "a"},
            ],
            tools=[BLOCK_FUNCTION],  # type: ignore[list-item]
            max_tokens=8,
            temperature=0,
        )
        assert reply.usage is not None
        assert reply.usage.prompt_tokens > 100  # the tool is in the prompt
        assert 0 < reply.usage.completion_tokens <= 8
        processes = children(server.pid)
        assert len(processes) >= 2  # the API server and its engine
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
    assert server.returncode == 128 + signal.SIGTERM
    deadline = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() for pid in processes) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not [pid for pid in processes if Path(f"/proc/{pid}").exists()]
