"""Makes a tool call out of what a model wrote: ids that are free, arguments that are an object. No wire format here."""

import uuid
from collections.abc import Collection

from protocol.messages import FunctionCallBlock
from providers.api.clean_text import clean_text

from .json_text import parse_object


class CallBlocks:
    """Makes the calls of one answer."""

    def __init__(self, taken_ids: Collection[str] = ()) -> None:
        """`taken_ids`: ids of the conversation's earlier calls; a call that repeats one gets an id of ours."""
        self._taken = set(taken_ids)

    def make(self, call_id: str, name: str, text: str) -> FunctionCallBlock:
        """One call. Arguments that are no JSON object are kept as text, for the model to be told.

        Raises:
            ValueError: it has no name.
        """
        if not name:
            raise ValueError("a tool call without a name")
        arguments = parse_object(text)
        return FunctionCallBlock(
            call_id=self._fresh(clean_text(call_id)),
            name=clean_text(name),
            arguments=arguments if arguments is not None else {},
            raw_arguments=None if arguments is not None else clean_text(text),
        )

    def _fresh(self, call_id: str) -> str:
        if not call_id or call_id in self._taken:
            call_id = f"call_{uuid.uuid4().hex[:24]}"
        self._taken.add(call_id)
        return call_id
