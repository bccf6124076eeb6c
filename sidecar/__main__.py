"""The command `agent-sidecar`: `serve` claims stdio and answers `initialize` before the program is imported."""

import os
import sys

# Nothing else up here: these two are loaded already, anything more could come from the workspace.


def main() -> None:
    """Run the command line; `serve` never returns."""
    _leave_workspace()
    arguments = sys.argv[1:]
    if arguments[:1] == ["serve"]:
        _serve(arguments[1:])
        return
    from sidecar.cli import main as run_command

    sys.exit(run_command(arguments))


def _leave_workspace() -> None:
    """Drop the working directory from the import path.

    `python -m` puts it first, and a client starts us in a workspace, which may hold a folder `protocol` of its
    own. Where we were imported from it ourselves, it is our checkout and stays.
    """
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:  # it was deleted, so that nothing can be imported from it
        return
    if here != os.path.dirname(os.path.dirname(os.path.realpath(__file__))):
        sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != here]


def _serve(arguments: list[str]) -> None:
    if "--help" in arguments:
        from sidecar.options import USAGE

        sys.stdout.write(USAGE)
        sys.exit(0)
    from sidecar.transport import stdio

    inbound, outbound = stdio.claim()
    from sidecar.options import UsageError, parse

    try:
        options = parse(arguments)
    except UsageError as error:
        sys.stderr.write(f"agent-sidecar serve: {error}\n")
        sys.exit(2)

    import gc
    from contextlib import suppress

    # No garbage to speak of is made by imports, and looking for it costs a tenth of them.
    gc.disable()
    from sidecar.handshake import greet

    try:
        start = greet(inbound, outbound, options.framing, options.config, lambda: __import__("sidecar.app"))
        from sidecar.app import serve

        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        gc.enable()
        code = serve(options, start)
    except KeyboardInterrupt:
        code = 130
    except BaseException:  # a `sys.exit` in a plug-in's code among them: it is not its process
        import traceback

        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads it any more, or a tool has closed it
            stream.flush()
    # Not sys.exit: a tool's thread that ignores its cancellation must not hold the process.
    os._exit(code)


if __name__ == "__main__":
    main()
