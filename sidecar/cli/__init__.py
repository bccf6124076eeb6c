"""The command line, except `serve`: one file a command, `main` to choose one."""

from .main import main

__all__ = ["main"]
