"""A real MCP server over stdio for tests: every form of reply, and every way to misbehave."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ImageContent, TextContent

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


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "broken":
        print("cannot find my configuration", file=sys.stderr)
        sys.exit(1)
    server.run("stdio")
