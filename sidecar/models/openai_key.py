"""Where an endpoint's key comes from: the environment, a command, or a secret of the host. It is written nowhere."""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from sidecar.config.endpoints import EndpointConfig
from sidecar.config.resolved_keys import resolved
from sidecar.errors import ModelAuth

COMMAND_TIMEOUT_S: Final = 30.0
NO_KEY: Final = "none"
"""Sent to endpoints that ask for no key: servers of one's own."""
_END_S: Final = 1.0


class KeySource:
    """The key of one endpoint."""

    def __init__(
        self,
        endpoint: str,
        config: EndpointConfig,
        *,
        is_required: bool,
        environ: Mapping[str, str],
        secrets: Mapping[str, str],
    ) -> None:
        """`is_required`: whether to refuse a call without a key, instead of sending a dummy."""
        self._endpoint = endpoint
        self._config = config
        self._is_required = is_required
        self._environ = environ
        self._secrets = secrets
        self._printed: str | None = None
        self._lock = asyncio.Lock()

    @property
    def hint(self) -> str:
        """Where the key comes from, to be added to a message that says it was refused."""
        config = self._config
        if config.api_key_command:
            return " that its api_key_command printed"
        if config.api_key_secret:
            return f" in the secret {config.api_key_secret!r}"
        if config.api_key_env:
            is_set = "" if self._environ.get(config.api_key_env) else ", which is not set"
            return f" in {config.api_key_env}{is_set}"
        return "; set api_key_env, api_key_command or api_key_secret for it"

    async def key(self) -> str:
        """The key.

        Raises:
            ModelAuth: there is none and one is needed, or it is none that can be sent; the message says what to set.
        """
        key = await self._found()
        if not (key.isascii() and key.isprintable()):
            what = "holds characters that no key has; copy it again"
            raise ModelAuth(f"endpoint {self._endpoint!r}: the key{self.hint} {what}")
        return key

    async def _found(self) -> str:
        config = self._config
        if config.api_key_command:
            return await self._of_command(config.api_key_command)
        if config.api_key_secret:
            key = self._secrets.get(config.api_key_secret)
            if not key:
                raise ModelAuth(
                    f"endpoint {self._endpoint!r} needs the secret {config.api_key_secret!r}: give it in initialize"
                )
            return key.strip()
        key = self._environ.get(config.api_key_env, "").strip() if config.api_key_env else ""
        if not key and self._is_required:
            raise ModelAuth(
                f"endpoint {self._endpoint!r} needs a key: set {config.api_key_env or 'OPENAI_API_KEY'}, "
                f"or api_key_env, api_key_command or api_key_secret in [endpoints.{self._endpoint}]"
            )
        return key or NO_KEY

    def forget(self) -> None:
        """The endpoint refused the key: ask its command again before the next call."""
        self._printed = None

    async def _of_command(self, command: tuple[str, ...]) -> str:
        async with self._lock:
            if self._printed is None:
                self._printed = await self._run(command)
                resolved(self._printed)
            return self._printed

    async def _run(self, command: tuple[str, ...]) -> str:
        failure = ModelAuth(f"the api_key_command of endpoint {self._endpoint!r} printed no key; run it by hand")
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # what it starts can be ended with it
            )
        except (OSError, ValueError):
            raise failure from None
        has_ended = False
        try:
            async with asyncio.timeout(COMMAND_TIMEOUT_S):
                printed, _ = await process.communicate()
            has_ended = True
        except TimeoutError:
            raise failure from None
        finally:
            if not has_ended:
                await _end(process)
        key = printed.decode("utf-8", "replace").strip()
        if process.returncode or not key or not key.isascii() or not key.isprintable():
            raise failure
        return key


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a command and what it has started, which may outlive it."""
    with suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):  # what has left its group may still hold its output open
        async with asyncio.timeout(_END_S):
            await process.wait()
