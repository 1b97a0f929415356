"""The `hypertool` command. `hypertool exec` runs one block and prints its observation as one JSON object."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from hypertool import blocks, config
from hypertool.approval import LEVELS, Approval
from hypertool.errors import ConfigError, HyperToolError
from hypertool.interface import Toolbox, open_parts
from hypertool.sandbox import Limits
from hypertool.servers import load_servers

EXIT_BLOCK_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130


def main(argv: list[str] | None = None) -> int:
    """Exit status: 0 the block succeeded, 1 it failed, 2 bad usage or an unavailable part."""
    parser = argparse.ArgumentParser(prog="hypertool", description="One tool whose argument is a program.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("exec", help="run one block over the configured servers")
    run.add_argument("block", type=Path, help="a file with the Python block")
    run.add_argument("--servers", type=Path, required=True, help="an mcpServers JSON file")
    run.add_argument("--trace", action="store_true", help="add stdout and every inner call to the output")
    run.add_argument(
        "--limit", action="append", default=[], metavar="NAME=VALUE", help="override a limit, e.g. wall_s=20"
    )
    run.add_argument(
        "--approve",
        action="append",
        default=[],
        metavar="LEVEL|SERVER.TOOL",
        help=f"what may run unasked: {', '.join(LEVELS)} (default write), or one tool by name; may be repeated",
    )
    arguments = parser.parse_args(argv)
    try:
        limits = config.load(Limits, None, arguments.limit)
        code = _read_block(arguments.block, limits)
        approval = Approval.parse(arguments.approve)
        output = asyncio.run(_exec(arguments.servers, code, limits, approval, arguments.trace))
    except HyperToolError as error:
        print(f"hypertool: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    print(json.dumps(output, ensure_ascii=False))
    return 0 if output["status"] else EXIT_BLOCK_FAILED


def _read_block(path: Path, limits: Limits) -> str:
    try:
        code = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot read the block: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: a block is UTF-8 text: {error}") from error
    if not code.strip() or "\0" in code:
        raise ConfigError(f"{path}: the block is {'empty' if not code.strip() else 'binary'}; give Python text")
    if len(code) > limits.code_chars:
        raise ConfigError(f"{path}: {len(code)} characters, the limit is {limits.code_chars} (code_chars)")
    return code


async def _exec(servers: Path, code: str, limits: Limits, approval: Approval, trace: bool) -> dict[str, Any]:
    configured = load_servers(servers)
    named = blocks.named_servers(code)
    start = list(configured) if named is None else [name for name in configured if name in named]
    async with open_parts(configured, start) as (pool, executor):
        toolbox = Toolbox(pool, executor, pool.specs(), limits, pool.names, approval)
        outcome, output = await toolbox.block(code)
    if trace:
        output["stdout"] = outcome.stdout
        output["calls"] = [dataclasses.asdict(call) for call in outcome.calls]
        output["seconds"] = round(outcome.wall_s, 4)
    return output


if __name__ == "__main__":
    sys.exit(main())
