"""The text of a streamed answer: surrogate pairs that were cut between two deltas are joined. No wire format here."""

from typing import Final

from providers.api.clean_text import clean_text, has_surrogate

_HIGH_SURROGATES: Final = ("\ud800", "\udbff")


class TextJoiner:
    """One text. Half of a surrogate pair waits for its other half."""

    def __init__(self) -> None:
        self._half = ""

    def add(self, text: str) -> str:
        """What may be handed on of it now; empty if nothing may."""
        if self._half or (text and has_surrogate(text)):
            text = self._half + text
            self._half = text[-1] if _HIGH_SURROGATES[0] <= text[-1] <= _HIGH_SURROGATES[1] else ""
            text = text.removesuffix(self._half) if self._half else text
        return clean_text(text)

    def finish(self) -> str:
        """What is left when the text has ended."""
        half, self._half = self._half, ""
        return "\ufffd" if half else ""
