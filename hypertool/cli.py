"""The `hypertool` command: `exec` runs one block and prints its observation, `serve` is an MCP server."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from hypertool import blocks, config, serve
from hypertool.approval import LEVELS, Approval
from hypertool.errors import ConfigError, HyperToolError
from hypertool.executors import AUTO, EXECUTORS
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
    run.add_argument("--trace", action="store_true", help="add stdout and every inner call to the output")
    front = commands.add_parser("serve", help="be an MCP server with one tool in front of the configured servers")
    front.add_argument("--http", metavar="HOST:PORT", help="streamable HTTP at /mcp instead of stdio")
    front.add_argument("--mode", choices=("hypertool", "hybrid"), default="hypertool", help="hybrid: inner tools too")
    for command, default in ((run, "write"), (front, "read")):
        command.add_argument("--servers", type=Path, required=True, help="an mcpServers JSON file")
        command.add_argument(
            "--limit", action="append", default=[], metavar="NAME=VALUE", help="override a limit, e.g. wall_s=20"
        )
        command.add_argument(
            "--approve",
            action="append",
            metavar="LEVEL|SERVER.TOOL",
            help=f"what runs unasked: {', '.join(LEVELS)} (default {default}), or one tool by name; may be repeated",
        )
        command.add_argument(
            "--executor",
            choices=(AUTO, *EXECUTORS),
            default=AUTO,
            help="what isolates the block; auto takes the strongest that works here, never none",
        )
        command.set_defaults(level=default)
    arguments = parser.parse_args(argv)
    try:
        return _run(arguments)
    except HyperToolError as error:
        print(f"hypertool: {error}", file=sys.stderr)
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def _run(arguments: argparse.Namespace) -> int:
    limits = config.load(Limits, None, arguments.limit)
    words = arguments.approve or []
    approval = Approval.parse(words if any("." not in word for word in words) else [arguments.level, *words])
    if arguments.command == "serve":
        address = serve.parse_address(arguments.http) if arguments.http else None
        asyncio.run(_serve(arguments.servers, limits, approval, arguments.mode, address, arguments.executor))
        return 0
    code = _read_block(arguments.block, limits)
    output = asyncio.run(_exec(arguments.servers, code, limits, approval, arguments.trace, arguments.executor))
    print(json.dumps(output, ensure_ascii=False))
    return 0 if output["status"] else EXIT_BLOCK_FAILED


async def _serve(
    servers: Path,
    limits: Limits,
    approval: Approval,
    mode: serve.Mode,
    address: tuple[str, int] | None,
    executor_name: str,
) -> None:
    async with open_parts(load_servers(servers), executor_name=executor_name) as (pool, executor):
        front = serve.Front(pool, executor, limits, approval, mode)
        count = f"{len(pool.specs())} tools of {len(pool.names)} servers"
        where = f"http://{address[0]}:{address[1]}/mcp" if address else "stdio"
        print(f"hypertool: {count} behind one, on {where}; blocks run in {executor.name}", file=sys.stderr)
        await (serve.serve_http(front, *address) if address else serve.serve_stdio(front))


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


async def _exec(
    servers: Path, code: str, limits: Limits, approval: Approval, trace: bool, executor_name: str
) -> dict[str, Any]:
    configured = load_servers(servers)
    named = blocks.named_servers(code)
    start = list(configured) if named is None else [name for name in configured if name in named]
    async with open_parts(configured, start, executor_name) as (pool, executor):
        toolbox = Toolbox(pool, executor, pool.specs(), limits, pool.names, approval)
        outcome, output = await toolbox.block(code)
    if trace:
        output["stdout"] = outcome.stdout
        output["calls"] = [dataclasses.asdict(call) for call in outcome.calls]
        output["executor"] = executor.name
        output["seconds"] = round(outcome.wall_s, 4)
    return output


if __name__ == "__main__":
    sys.exit(main())
