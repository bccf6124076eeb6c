"""`conformance`: holds a client, or the record of a conversation, against the contract. One file one part of it."""

from .command import COMMAND

__all__ = ["COMMAND"]
