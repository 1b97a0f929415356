"""A stdio server with one tool that does nothing: what is left is the protocol."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("trivial")


@server.tool()
def add(n: int) -> dict[str, int]:
    """Return the number."""
    return {"n": n}


if __name__ == "__main__":
    server.run("stdio")
