"""The command `acp`: a front for editors that speak the Agent Client Protocol. The agents run in `serve`, its child."""

from .command import COMMAND

__all__ = ["COMMAND"]
