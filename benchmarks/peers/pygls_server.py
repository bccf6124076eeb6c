"""A stock pygls server on its own stdio: it answers with what it was asked, and streams notifications on request."""

from typing import Any

from pygls.lsp.server import LanguageServer

server = LanguageServer("peer", "1")


@server.feature("bench/echo")
def echo(params: Any) -> dict[str, str]:
    return {"status": params.reason}


@server.feature("bench/stream")
async def stream(params: Any) -> dict[str, int]:
    for number in range(params.count):
        server.protocol.notify("bench/event", {"sub": number, **params.event._asdict()})
    return {"sent": params.count}


if __name__ == "__main__":
    server.start_io()
