"""Serves a checkpoint folder as an OpenAI-compatible endpoint, with the chat template it was trained with.

    python scripts/serve.py --model models/smollm2-135m-instruct --port 8000

vLLM runs from an environment of its own: `.serve` (`make setup-serve`; its CPU build needs other pins than
training) or the interpreter in HYPERTOOL_SERVE_PYTHON; where vllm is installed beside this script, as on a GPU
machine, from here. Prints `READY <url>` on stdout once it answers; everything else goes to stderr. Stays in the
foreground; Ctrl-C or SIGTERM ends the server and all its processes. Ready on 2 CPU cores in about a minute.
Flags after `--` go to vLLM unchanged.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

PATIENCE_S = 600.0  # until /health answers; large weights load slowly
GRACE_S = 10.0  # between SIGTERM and SIGKILL


class ServeError(Exception):
    """Something the user has to change; the message names it."""


def check_model(folder: Path) -> Path:
    """The chat template of a complete model folder. Raises ServeError for what is missing."""
    if not folder.is_dir():
        raise ServeError(
            f"{folder}: no such folder. `python scripts/fetch_models.py` makes models/smollm2-135m-instruct."
        )
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        if not (folder / name).is_file():
            raise ServeError(f"{folder}: {name} is missing, so this is not a finished model folder.")
    if not any(folder.glob("*.safetensors")) and not any(folder.glob("*.bin")):
        raise ServeError(f"{folder}: no weights (*.safetensors). Did training stop before saving?")
    template = folder / "chat_template.jinja"
    if not template.is_file():
        raise ServeError(
            f"{folder}: chat_template.jinja is missing, and serving with another template than the one used in "
            "training changes what the model reads. Copy hypertool/templates/chat.jinja there if it is this one."
        )
    return template


def find_python() -> tuple[str, bool]:
    """The interpreter to run vLLM with, and whether it is the CPU build."""
    chosen = os.environ.get("HYPERTOOL_SERVE_PYTHON")
    if not chosen and importlib.util.find_spec("vllm"):
        chosen = sys.executable
    path = Path(chosen or ".serve/bin/python")
    if not path.is_file():
        raise ServeError(f"{path}: no such interpreter. `make setup-serve` makes it, or set HYPERTOOL_SERVE_PYTHON.")
    probe = (
        "import importlib.metadata as m; print(*sorted(d.name for d in m.distributions() if d.name.startswith('vllm')))"
    )
    found = subprocess.run([path, "-c", probe], capture_output=True, text=True).stdout.split()
    if not found:
        raise ServeError(f"{path}: vLLM is not installed there. `make setup-serve` installs it into .serve.")
    return str(path), "vllm" not in found


def command(python: str, on_cpu: bool, model: Path, template: Path, options: argparse.Namespace) -> list[str]:
    """The vLLM command line. `-m ... api_server` because `vllm serve` looks for a distribution called vllm."""
    flags = ["--served-model-name", options.name or str(model), "--chat-template", str(template)]
    flags += ["--host", "127.0.0.1", "--port", str(options.port)]
    flags += ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    flags += ["--max-num-seqs", str(options.concurrency), "--seed", str(options.seed)]
    flags += ["--enable-prefix-caching"]  # every request begins with the same system turn
    if on_cpu:
        limit = json.loads((model / "config.json").read_text())["max_position_embeddings"]
        flags += ["--dtype", "float32", "--enforce-eager"]  # bf16 is slower on AVX2; compiling takes minutes
        flags += ["--distributed-executor-backend", "uni"]  # the worker inside the engine: one start-up less
        flags += ["--max-model-len", str(min(limit, options.max_model_len or 2048))]
    elif options.max_model_len:
        flags += ["--max-model-len", str(options.max_model_len)]
    return [python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), *flags, *options.vllm]


def environment(on_cpu: bool) -> dict[str, str]:
    settings = {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    if on_cpu:
        cores = len(os.sched_getaffinity(0))
        settings |= {
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # without it vLLM overrules the backend chosen above
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(cores)),
        }
    return settings | os.environ  # what the user set wins


def wait_ready(server: subprocess.Popen[bytes], port: int) -> None:
    """Return when the server answers. Raises ServeError if it ends or stays silent too long."""
    start = time.monotonic()
    while time.monotonic() - start < PATIENCE_S:
        if server.poll() is not None:
            raise ServeError(f"vLLM ended with exit status {server.returncode}; its own words are above.")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as reply:
                if reply.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise ServeError(f"vLLM did not answer within {PATIENCE_S:.0f} s.")


def stop(server: subprocess.Popen[bytes]) -> None:
    """End the server's whole process group: vLLM's engine is a process of its own."""
    for number, patience in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
        try:
            os.killpg(server.pid, number)
        except ProcessLookupError:
            break
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline and alive(server):
            time.sleep(0.1)
        if not alive(server):
            break


def alive(server: subprocess.Popen[bytes]) -> bool:
    server.poll()  # reaps the leader
    try:
        os.killpg(server.pid, 0)
    except ProcessLookupError:
        return False
    return True


def main(options: argparse.Namespace) -> int:
    template = check_model(options.model)
    python, on_cpu = find_python()
    if options.port == 0:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            options.port = probe.getsockname()[1]
    else:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", options.port)) == 0:
                raise ServeError(f"port {options.port} is taken. Choose another --port, or --port 0 for any free one.")

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, leave)
    start = time.monotonic()
    print(f"serve: starting vLLM for {options.model} on port {options.port} ...", file=sys.stderr, flush=True)
    server = subprocess.Popen(
        command(python, on_cpu, options.model, template, options),
        env=environment(on_cpu),
        stdout=sys.stderr,  # stdout carries the READY line alone
        start_new_session=True,
    )
    try:
        wait_ready(server, options.port)
        print(f"serve: ready after {time.monotonic() - start:.0f} s; Ctrl-C ends it", file=sys.stderr, flush=True)
        print(f"READY http://127.0.0.1:{options.port}/v1", flush=True)
        return server.wait()
    finally:
        stop(server)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--model", type=Path, required=True, help="a folder with config, tokenizer and weights")
    parser.add_argument("--port", type=int, default=8000, help="0 takes any free port")
    parser.add_argument("--name", help="how requests call the model (default: the path)")
    parser.add_argument("--concurrency", type=int, default=24, help="requests computed together")
    parser.add_argument("--max-model-len", type=int, help="prompt and answer together (default on CPU: 2048)")
    parser.add_argument("--seed", type=int, default=0, help="of sampling")
    parser.add_argument("vllm", nargs="*", help="after --: flags for vLLM")
    try:
        sys.exit(main(parser.parse_args()))
    except ServeError as error:
        print(f"serve: {error}", file=sys.stderr)
        sys.exit(2)
