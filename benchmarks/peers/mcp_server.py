"""A server of the `mcp` package on stdio, with one tool that answers with what it was asked."""

from mcp.server import MCPServer

server = MCPServer("peer")


@server.tool()
def echo(text: str) -> str:
    """Answer with the text."""
    return text


if __name__ == "__main__":
    server.run("stdio")
