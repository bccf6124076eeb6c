"""The page on the host in the loop shows what goes over the wire: its conversation is held with a real sidecar."""

from pathlib import Path

import pytest

from tests.bench.doc_pages import broken_links
from tests.bench.wire_pages import Differs, conversation, hold, shown

PAGE = Path(__file__).parents[2] / "docs" / "host-in-the-loop.md"


async def test_the_page_s_conversation_goes_as_it_shows_it(tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    folder.mkdir(mode=0o755)

    held = await hold(PAGE, folder)

    assert held == shown(PAGE) > 20
    for method in ("callTool", "beforeRun", "afterRun", "requestApproval", "elicit"):
        assert f'"method":"host/{method}"' in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('← {"jsonrpc":"2.0","id":1,"result":{ "schema":{}}}', "expected"),
        ('… {"jsonrpc":"2.0","id":2,"result":{}}', "there never came"),
    ],
)
async def test_a_conversation_that_goes_otherwise_is_noticed(tmp_path: Path, line: str, why: str) -> None:
    async with conversation(tmp_path) as talk:
        await talk.line("$ agent-sidecar serve --store memory")
        await talk.line('→ {"jsonrpc":"2.0","id":1,"method":"initialize"}')
        await talk.line('→ {"jsonrpc":"2.0","id":7,"method":"shutdown"}')
        await talk.line('→ {"jsonrpc":"2.0","method":"exit"}')

        with pytest.raises(Differs, match=why):
            await talk.line(line)


def test_every_link_leads_somewhere() -> None:
    assert broken_links(PAGE) == []
