"""The wire's end: a sidecar that a client left behind does not outlive the conversation."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Final

import pytest

from sidecar.cli.conformance.news import News
from sidecar.cli.conformance.wire import Wire

PATIENCE_S: Final = 20.0


@pytest.mark.parametrize("has_ended", [False, True])
async def test_it_ends_the_sidecar_that_still_runs(tmp_path: Path, *, has_ended: bool) -> None:
    sidecar = await asyncio.create_subprocess_exec("true" if has_ended else "cat", stdin=asyncio.subprocess.PIPE)
    if has_ended:
        await sidecar.wait()
    news = News(PATIENCE_S)
    async with Wire(tmp_path / "wire", news) as wire:
        _, relay = await asyncio.open_unix_connection(tmp_path / "wire")
        for line in ({"pid": sidecar.pid}, {"→": {"method": "x"}}):
            relay.write(json.dumps(line).encode() + b"\n")
        await news.until(lambda: wire.lines or None)

    async with asyncio.timeout(PATIENCE_S):
        assert await sidecar.wait() == (0 if has_ended else -signal.SIGKILL)
    relay.close()
