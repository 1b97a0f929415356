"""A real MCP server over stdio for tests: every form of reply, and every way to misbehave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ImageContent, TextContent, ToolAnnotations

server = MCPServer("echo")


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Return the text. Nothing else."""
    return text


@server.tool()
def typed(rows: int) -> dict[str, Any]:
    """Return an object with structured content."""
    return {"rows": [{"id": number} for number in range(rows)]}


@server.tool()
def listed(rows: int) -> list[dict[str, int]]:
    """Return a list: one text block per element, structured content wrapped in result."""
    return [{"id": number} for number in range(rows)]


@server.tool()
def fail(reason: str = "boom") -> str:
    """Fail with a text."""
    raise ToolError(reason)


@server.tool(structured_output=False)
def sleep(seconds: float) -> str:
    """Wait, then answer."""
    time.sleep(seconds)
    return "slept"


@server.tool()
async def freeze(seconds: float) -> str:
    """Hold the server's only event loop, so that it answers nobody."""
    time.sleep(seconds)
    return "thawed"


@server.tool()
def die() -> str:
    """Kill the server in the middle of a call."""
    os._exit(3)


@server.tool(structured_output=False)
def noise() -> str:
    """Print a line to stdout, where only protocol may go."""
    print("LOG LINE TO STDOUT", flush=True)
    return "ok"


@server.tool(structured_output=False)
def big(megabytes: int) -> str:
    """Return megabytes of text."""
    return "x" * (megabytes * 1_000_000)


@server.tool(structured_output=False)
def picture() -> list[TextContent | ImageContent]:
    """Return text and an image."""
    return [
        TextContent(type="text", text="a dot"),
        ImageContent(type="image", data="AAAA", mime_type="image/png"),
    ]


@server.tool()
def environment() -> dict[str, str]:
    """Return the server's environment."""
    return dict(os.environ)


@server.tool(structured_output=False)
def process_id() -> str:
    """Return the process id as text."""
    return str(os.getpid())


@server.tool(structured_output=False, annotations=ToolAnnotations(read_only_hint=True))
def die_once(marker: str) -> str:
    """Kill the server on the first call with this marker file, answer on the next; claims to be read-only."""
    if not Path(marker).exists():
        Path(marker).touch()
        os._exit(3)
    return "alive"


@server.tool(structured_output=False, annotations=ToolAnnotations(destructive_hint=True))
def erase(what: str) -> str:
    """Claim to have erased something for good."""
    return f"erased {what}"


@server.tool(structured_output=False)
def stay(seconds: float) -> str:
    """Start a process in a session of its own and hang with it."""
    child = subprocess.Popen(["sleep", str(seconds)], start_new_session=True)
    Path(os.environ["MARKER"]).write_text(f"{os.getpid()} {child.pid}")
    time.sleep(seconds)
    return "stayed"


if __name__ == "__main__":
    if "MARKER" in os.environ:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if len(sys.argv) > 1 and sys.argv[1] == "broken":
        print("cannot find my configuration", file=sys.stderr)
        sys.exit(1)
    if len(sys.argv) > 2 and sys.argv[1] == "http":
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run("stdio")
