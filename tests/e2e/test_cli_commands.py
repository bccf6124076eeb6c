"""The commands that start no server: help, schema, config, doctor."""

import json
import subprocess
from pathlib import Path

import pytest

from protocol.schema import json_schema
from protocol.version import VERSION
from sidecar.cli.command import Command
from sidecar.cli.main import COMMANDS, main
from tests.e2e.cli_process import COMMAND, Cli

CONFIG = 'default_model = "scripted:echo"\n'


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    return Cli(tmp_path)


async def test_version_names_the_program(cli: Cli) -> None:
    assert await cli("--version") == (0, f"agent-sidecar {VERSION}\n", "")


async def test_help_lists_every_command(cli: Cli) -> None:
    outcome = await cli("--help")
    assert outcome.code == 0
    for command in COMMANDS:
        assert f"\n    {command.name}" in outcome.out


async def test_no_command_and_an_unknown_one_are_wrong_usage(cli: Cli) -> None:
    assert (await cli()).code == 2
    unknown = await cli("rum")
    assert unknown.code == 2
    assert "invalid choice: 'rum'" in unknown.err


@pytest.mark.parametrize("command", [pytest.param(command, id=command.name) for command in COMMANDS])
def test_every_command_has_a_help_and_those_that_start_a_server_name_its_options(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command.name, "--help"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    for option in ("--config FILE", "--store SPEC"):
        assert (option in printed.out) is command.has_server_options
    assert command.has_server_options is (command.name != "conformance")


async def test_schema_prints_the_contract_in_three_forms(cli: Cli) -> None:
    assert json.loads((await cli("schema")).out) == json_schema()
    assert json.loads((await cli("schema", "--format", "openrpc")).out)["info"]["version"] == VERSION
    assert "export interface RunParams {" in (await cli("schema", "--format", "typescript")).out


def test_a_reader_that_has_enough_is_no_traceback() -> None:
    with subprocess.Popen([*COMMAND, "schema"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1) == b"{"
        process.stdout.close()
        assert process.stderr.read() == b""


async def test_config_check_names_file_line_and_key(cli: Cli) -> None:
    path = cli.folder / "mine.toml"
    path.write_text('# mine\ndefault_modle = "scripted:echo"\n')
    outcome = await cli("config", "check", "--config", str(path))
    assert (outcome.code, outcome.out) == (1, "")
    assert f"{path}:2" in outcome.err
    assert "did you mean 'default_model'?" in outcome.err


async def test_config_show_names_where_a_value_came_from(cli: Cli) -> None:
    path = cli.folder / "mine.toml"
    path.write_text(CONFIG)
    shown = (await cli("config", "show", "--config", str(path), "--store", "memory")).out.splitlines()
    assert [line.split(" # ")[1] for line in shown if line.startswith("default_model")] == [str(path)]
    assert [line.split(" # ")[1] for line in shown if line.startswith('path = "memory"')] == ["flag"]


async def test_config_path_names_the_files_that_were_read_or_would_be(cli: Cli) -> None:
    path = cli.folder / "mine.toml"
    path.write_text(CONFIG)
    assert (await cli("config", "path", "--config", str(path))).out == f"{path}\n"
    assert (await cli("config", "path")).out.endswith("sidecar.toml\n")


async def _doctor(cli: Cli, *arguments: str, **env: str) -> tuple[int, dict[str, dict[str, str]]]:
    outcome = await cli("doctor", "--json", *arguments, **env)
    found = json.loads(outcome.out)
    assert found["canRun"] == (outcome.code == 0)
    return outcome.code, {check["name"]: check for check in found["checks"]}


async def test_doctor_is_content_where_the_default_agent_can_run(cli: Cli) -> None:
    (cli.folder / "mine.toml").write_text(CONFIG)
    code, checks = await _doctor(cli, "--config", "mine.toml", "--store", cli.store)
    assert code == 0
    assert checks["default model"]["detail"] == "scripted:echo"
    assert checks["store"]["detail"].endswith("sessions.db, to be created")
    assert not (cli.folder / "sessions.db").exists()


async def test_doctor_reads_a_store_that_is_there(cli: Cli) -> None:
    await cli("run", "hello", "--session", "s", "--model", "scripted:echo", "--store", cli.store)
    _, checks = await _doctor(cli, "--store", cli.store)
    assert "schema 2" in checks["store"]["detail"]


async def test_doctor_names_a_store_that_is_not_ours(cli: Cli) -> None:
    (cli.folder / "sessions.db").write_text("a diary, not a database" * 50)
    code, checks = await _doctor(cli, "--store", cli.store)
    assert (code, checks["store"]["status"]) == (1, "problem")
    assert "--store" in checks["store"]["fix"]


async def test_doctor_names_a_place_where_no_store_can_be(cli: Cli) -> None:
    (cli.folder / "file").touch()
    code, checks = await _doctor(cli, "--store", f"sqlite:{cli.folder / 'file' / 'sessions.db'}")
    assert (code, checks["store"]["status"]) == (1, "problem")
    assert "cannot be created" in checks["store"]["detail"]


async def test_doctor_names_an_endpoint_that_does_not_answer(cli: Cli) -> None:
    code, checks = await _doctor(cli, "--store", "memory", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert (code, checks["default model"]["status"]) == (1, "problem")
    assert "127.0.0.1:9" in checks["endpoint openai"]["detail"]


async def test_doctor_stops_at_a_configuration_that_is_wrong(cli: Cli) -> None:
    (cli.folder / "mine.toml").write_text("colour = 3\n")
    code, checks = await _doctor(cli, "--config", "mine.toml")
    assert (code, checks["configuration"]["status"]) == (1, "problem")
    assert "colour" in checks["configuration"]["detail"]


async def test_doctor_for_people_ends_with_a_verdict(cli: Cli) -> None:
    (cli.folder / "mine.toml").write_text(CONFIG)
    outcome = await cli("doctor", "--config", "mine.toml", "--store", "memory")
    assert outcome.out.endswith("\nThe default agent can run.\n")
    assert "\x1b" not in outcome.out
