"""The child process that runs the Mem0 library. A script: imported by nobody, and it needs nothing of ours.

The library takes over a second to import, reads the environment of whoever imports it, and logs what users say: here it
has an environment of its own, and nobody hears it. Each frame on stdin and stdout is a length, four bytes with the
highest first, and so many bytes of JSON. The first frame is Mem0's configuration, and its answer {} or {"error"}. Each
later one is {"id", "do": "add", "messages", "ids"} or {"id", "do": "search", "query", "ids", "most", "least"?}; its
answer, whenever there is one, is {"id", "memories"} or {"id", "error"}. It ends when stdin ends.

What Mem0 does to its store is done one at a time: the store is not made for threads. While it waits for an endpoint,
others go on.
"""

import ctypes
import importlib
import json
import logging
import os
import signal
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO, Final

LLM_S: Final = 50.0
EMBEDDER_S: Final = 8.0
"""So long an endpoint may take for one answer; each is asked twice."""

_PR_SET_PDEATHSIG: Final = 1
_LOST: Final = {
    "Error parsing extraction response": "the model's answer holds no memories that could be read",
    "Failed to embed memory text": "a memory could not be embedded",
    "Failed to insert memory": "a memory could not be stored",
}
"""How Mem0's log begins where it goes on without a memory, and what that means."""


def main() -> None:
    """Answer until stdin ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library prints where it likes
    if sys.platform == "linux":  # a parent that is killed closes no pipe that is read yet
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    config = _read(requests)
    if config is None:
        return
    try:
        memory = Memories(config)
    except Exception as error:
        _write(answers, {"error": _told(error)})
        return
    _write(answers, {})
    writing = threading.Lock()
    while (request := _read(requests)) is not None:
        threading.Thread(target=_answer, args=(memory, request, answers, writing), daemon=True).start()
    memory.end()
    os._exit(0)  # a request that still waits for an endpoint holds up nobody


class Memories:
    """Mem0 over one folder."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Import the library and open the folder.

        Raises:
            Exception: what either raises.
        """
        self._log = _Log()
        logging.getLogger("mem0").addHandler(self._log)
        logging.getLogger("mem0").propagate = False
        self._turn = threading.Lock()
        self._mem0: Any = importlib.import_module("mem0").Memory.from_config(config)
        self._free_while_asking(self._mem0.llm, LLM_S, "generate_response")
        self._free_while_asking(self._mem0.embedding_model, EMBEDDER_S, "embed", "embed_batch")

    def add(self, messages: list[dict[str, str]], ids: dict[str, str]) -> list[dict[str, Any]]:
        """Make memories of what was said.

        Raises:
            LostError: some were made and not kept, or none could be made.
            Exception: what Mem0 raises.
        """
        with self._turn, self._log.watching() as lost:
            found = self._mem0.add(messages, **ids)["results"]
        if lost:
            raise LostError("; ".join(dict.fromkeys(lost)))
        return [{"id": one["id"], "memory": one["memory"]} for one in found]

    def search(self, query: str, ids: dict[str, str], most: int, least: float | None) -> list[dict[str, Any]]:
        """What fits a question, best first.

        Raises:
            Exception: what Mem0 raises.
        """
        more = {} if least is None else {"threshold": least}
        with self._turn:
            found = self._mem0.search(query, filters=ids, top_k=most, **more)["results"]
        return [{"id": str(one["id"]), "memory": one["memory"]} for one in found]

    def end(self) -> None:
        """Close the folder, once nothing is being written to it."""
        if self._turn.acquire(timeout=1.0):
            self._mem0.close()
            self._mem0.vector_store.client.close()

    def _free_while_asking(self, service: Any, seconds: float, *names: str) -> None:
        service.client = service.client.with_options(timeout=seconds, max_retries=1)
        for name in names:
            setattr(service, name, self._freely(getattr(service, name)))

    def _freely(self, ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any, **kwargs: Any) -> Any:
            self._turn.release()
            try:
                return ask(*args, **kwargs)
            finally:
                self._turn.acquire()

        return asked


class LostError(Exception):
    """Mem0 went on without a memory. The text says why, in our words."""


class _Log(logging.Handler):
    """Hears what Mem0 logs in the thread that watches. It keeps no text of it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._here = threading.local()

    def watching(self) -> "_Watch":
        return _Watch(self._here)

    def emit(self, record: logging.LogRecord) -> None:
        """Note what it means, where it means that something was lost."""
        lost: list[str] | None = getattr(self._here, "lost", None)
        if lost is not None:
            lost += [meaning for begins, meaning in _LOST.items() if str(record.msg).startswith(begins)]


class _Watch:
    def __init__(self, here: threading.local) -> None:
        self._here = here

    def __enter__(self) -> list[str]:
        lost: list[str] = []
        self._here.lost = lost
        return lost

    def __exit__(self, *_: object) -> None:
        self._here.lost = None


def _answer(memory: Memories, request: dict[str, Any], answers: BinaryIO, writing: threading.Lock) -> None:
    try:
        if request["do"] == "add":
            found = memory.add(request["messages"], request["ids"])
        else:
            found = memory.search(request["query"], request["ids"], request["most"], request.get("least"))
        answer: dict[str, Any] = {"id": request["id"], "memories": found}
    except Exception as error:
        answer = {"id": request["id"], "error": _told(error)}
    with writing:
        _write(answers, answer)


def _told(error: BaseException) -> str:
    """Our own words, or the names of an exception and its cause: their texts may hold anything."""
    if isinstance(error, LostError):
        return str(error)
    if "already accessed by another instance" in str(error):
        return "another process uses the folder"
    cause = f" from {type(error.__cause__).__name__}" if error.__cause__ is not None else ""
    return type(error).__name__ + cause


def _read(stream: BinaryIO) -> dict[str, Any] | None:
    head = stream.read(4)
    if len(head) < 4:
        return None
    (size,) = struct.unpack(">I", head)
    body = stream.read(size)
    return json.loads(body) if len(body) == size else None


def _write(stream: BinaryIO, frame: dict[str, Any]) -> None:
    body = json.dumps(frame).encode()
    stream.write(struct.pack(">I", len(body)) + body)
    stream.flush()


if __name__ == "__main__":
    main()
