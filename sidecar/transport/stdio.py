"""Takes the standard streams for the protocol before any other code can touch them. Reads and writes nothing itself."""

import os
import sys

_STDIN, _STDOUT, _STDERR = 0, 1, 2


def claim() -> tuple[int, int]:
    """Reserve stdin and stdout for the protocol, for the life of the process.

    Afterwards fd 0 is the null device and fd 1 is stderr, so that a `print`, a C library or a child process
    can neither read a message nor write between two frames.

    Returns:
        The inbound and the outbound descriptor: both above 2, both close-on-exec.
    """
    _open_missing()
    inbound, outbound = os.dup(_STDIN), os.dup(_STDOUT)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, _STDIN)
    os.close(null)
    os.dup2(_STDERR, _STDOUT)
    _reopen_text_streams()
    if sys.platform == "win32":
        _claim_on_windows(inbound, outbound)
    return inbound, outbound


def _open_missing() -> None:
    """Open the null device on each of fds 0 to 2 that is closed: the next `open` would land there otherwise."""
    for fd in (_STDIN, _STDOUT, _STDERR):
        try:
            os.fstat(fd)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != fd:
                os.dup2(null, fd)
                os.close(null)
            os.set_inheritable(fd, True)


def _reopen_text_streams() -> None:
    """Give Python a stdout and stderr that show each line at once; where a fd was closed, it has none at all."""
    for name, fd in (("stdout", _STDOUT), ("stderr", _STDERR)):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(fd, "w", buffering=1, errors="backslashreplace", closefd=False))
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)


if sys.platform == "win32":

    def _claim_on_windows(inbound: int, outbound: int) -> None:
        """Switch newline translation off, and move the handles that C code and children ask for."""
        import ctypes
        import msvcrt

        for fd in (inbound, outbound):
            msvcrt.setmode(fd, os.O_BINARY)
            os.set_inheritable(fd, False)  # there, the copy of a standard stream is inheritable
        for standard_handle, fd in ((-10, _STDIN), (-11, _STDOUT)):
            ctypes.windll.kernel32.SetStdHandle(standard_handle, msvcrt.get_osfhandle(fd))
