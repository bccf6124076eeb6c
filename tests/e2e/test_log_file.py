"""`--log-file` and `[logging] file`: a log that others cannot read, and that never gets in the way of a run."""

import os
import re
import shutil
import stat
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from protocol.version import VERSION
from tests.bench.host import FakeHost
from tests.e2e.cli_process import Cli

StartHost = Callable[..., Awaitable[FakeHost]]

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} \d+ [A-Z]+ [\w.-]+: .+")


async def is_served(host: FakeHost) -> None:
    session = await host.create_session(model="scripted:echo")
    assert (await session.run("hello"))["text"] == "hello"


async def end(host: FakeHost) -> None:
    host.hang_up()
    assert await host.wait() == 0


@pytest.mark.parametrize("how", ["flag", "file"])
async def test_the_log_is_in_its_file_and_begins_with_who_writes_it(
    how: str, start_host: StartHost, tmp_path: Path
) -> None:
    file, config = tmp_path / "log.txt", tmp_path / "mine.toml"
    config.write_text('[logging]\nfile = "log.txt"\n' if how == "file" else "")
    flags = ("--log-file", str(file)) if how == "flag" else ()

    host = await start_host(args=("--config", str(config), "--log-level", "info", *flags))
    await is_served(host)
    await end(host)

    first, *rest = file.read_text().splitlines()
    assert LINE.fullmatch(first)
    for word in (f"agent-sidecar {VERSION}", f"process {host.process.pid}", sys.version.split()[0], os.uname().sysname):
        assert word in first
    assert any("ending: end of input" in line for line in rest)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert host.stderr == b""


async def test_the_first_line_is_there_at_every_level(start_host: StartHost, tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    await end(await start_host(args=("--log-file", str(file), "--log-level", "error")))
    assert len(file.read_text().splitlines()) == 1


async def test_several_processes_share_a_log(start_host: StartHost, tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    file.write_text("from before\n")
    hosts = [await start_host(args=("--log-file", str(file), "--log-level", "debug")) for _ in range(3)]
    for host in hosts:
        await is_served(host)
        await end(host)

    before, *lines = file.read_text().splitlines()

    assert before == "from before"
    assert all(LINE.fullmatch(line) for line in lines)
    assert {int(line.split()[2]) for line in lines} == {host.process.pid for host in hosts}


async def test_a_folder_that_is_missing_is_named_and_the_log_is_on_stderr(
    start_host: StartHost, tmp_path: Path
) -> None:
    file = tmp_path / "nowhere" / "log.txt"
    host = await start_host(args=("--log-file", str(file)))
    await is_served(host)
    await end(host)
    assert host.stderr.decode().count("\n") == 1
    assert f"create {file.parent}, so the log is here" in host.stderr.decode()
    assert not file.parent.exists()


async def test_a_folder_that_vanishes_costs_no_run_and_one_line(start_host: StartHost, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    host = await start_host(args=("--log-file", str(folder / "log.txt"), "--log-level", "info"))
    await host.request("getState")  # it answers `initialize` before it opens anything
    shutil.rmtree(folder)

    for number in range(3):
        host.notify("no/such/notification", {"n": number})
        host.send({"jsonrpc": "2.0", "id": f"s{number}", "result": None})
    await is_served(host)

    await end(host)
    assert host.stderr.decode().count("lines of the log are lost") == 1
    assert host.stderr.decode().count("\n") == 1
    assert not folder.exists()


async def test_a_full_disk_costs_no_run_and_one_line(start_host: StartHost, tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    most = 200
    host = await start_host(under=("prlimit", f"--fsize={most}"), args=("--log-file", str(file), "--log-level", "info"))
    for number in range(20):
        host.send({"jsonrpc": "2.0", "id": f"s{number}", "result": None})
    await is_served(host)

    await end(host)
    assert host.stderr.decode().count("lines of the log are lost") == 1
    assert host.stderr.decode().count("\n") == 1
    assert file.stat().st_size <= most


async def test_a_log_that_was_moved_away_goes_on_in_a_new_file(start_host: StartHost, tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    host = await start_host(args=("--log-file", str(file), "--log-level", "info"))
    await host.request("getState")
    file.rename(tmp_path / "log.old")
    await end(host)
    assert "ending: end of input" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_no_message_is_in_the_log(start_host: StartHost, tmp_path: Path) -> None:
    file = tmp_path / "log.txt"
    host = await start_host(
        args=("--log-file", str(file), "--log-level", "debug"),
        initialize={"initializationOptions": {"sidecar": {"secrets": {"k": "canary-secret"}}}},
    )
    session = await host.create_session(model="scripted:echo", instructions="canary-instructions")
    await session.run("canary-prompt", functionInvocationKwargs={"k": "canary-kwargs"})
    await host.exchange(b'{"canary-garbage\n')
    await end(host)
    assert "canary" not in file.read_text()


async def test_commands_that_start_a_sidecar_pass_on_where_it_logs(tmp_path: Path) -> None:
    cli = Cli(tmp_path)
    outcome = await cli("run", "hello", "--model", "scripted:echo", "--log-file", "log.txt", "--log-level", "info")
    assert outcome == (0, "hello\n", "")
    assert "ending: " in (tmp_path / "log.txt").read_text()


async def test_an_error_s_id_leads_to_its_line_and_nothing_of_what_was_said_is_there(
    start_host: StartHost, tmp_path: Path
) -> None:
    file = tmp_path / "log.txt"
    host = await start_host(args=("--log-file", str(file), "--log-level", "debug"))
    refused = [
        await host.refusal("getHistory", {"sessionId": "canary"}),
        await host.refusal("no\nsuch canary" + "y" * 1000),
    ]
    unreadable = await host.exchange(b"canary\n")
    await end(host)

    lines = file.read_text().splitlines()
    for error_id, kind in [
        *((error.data["errorId"], error.kind) for error in refused),
        (unreadable["error"]["data"]["errorId"], "parseError"),
    ]:
        assert [kind in line for line in lines if f"errorId={error_id}" in line] == [True]
    assert all(LINE.fullmatch(line) and len(line) < 300 for line in lines)
    assert "sessionId" not in file.read_text()
    assert any("'initialize': answered after" in line or "'getHistory': answered after" in line for line in lines)
