"""A provider's state with a type: read, written and changed in a session's bag. It keeps nothing itself."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from .errors import ProviderError
from .json_value import plain_json
from .session import Session

T = TypeVar("T")

_NOTHING: Final[dict[str, Any]] = {}
"""What a provider's corner of the bag holds before anything was written to it."""


class StateMismatch(ProviderError):
    """What stands in the bag is not what the provider keeps there; the text names the key and the place, no value."""


class ProviderState(Generic[T]):
    """One typed value in each session's bag.

    Make one in a provider's `__init__`, `ProviderState(Memory, key=self.state_key)`, and use it from every hook and
    tool. What `get` returns is the caller's own: change it and `save` it, or change it in `update`, which no other
    thread gets into. Every save puts a new object into the bag, so a hook that uses this leaves its argument `state`
    alone.
    """

    def __init__(
        self,
        model: type[T],
        initial: Callable[[Session | None], T] | None = None,
        *,
        key: str | None = None,
        renamed_from: Sequence[str] = (),
    ) -> None:
        """Describe the value.

        Args:
            model: A pydantic model or a dataclass with at least one field.
            initial: Makes a session's first value. It is called once a session and its value is written at once, so
                what it depends on may change later without effect. It may raise: then nothing is written. Default:
                `model()`.
            key: Where the value stands in the bag; default: the model's name. A provider's own `state_key` is guarded
                against a second provider; another key is not.
            renamed_from: Earlier keys; a value found under one of them moves.

        Raises:
            ValueError: a key is blank.
        """
        self.key = model.__name__ if key is None else key
        self._renamed_from = tuple(renamed_from)
        if not all(name.strip() for name in (self.key, *self._renamed_from)):
            raise ValueError("the key of a provider's state must not be blank")
        self._adapter = TypeAdapter(model)
        self._model = model
        self._initial = initial

    def get(self, session: Session | None) -> T:
        """The session's value; the first time, and without a session every time, the initial one.

        Raises:
            StateMismatch: what stands there does not fit the model. It is left as it is.
            ValueError: the initial value holds what is no JSON.
            Exception: what `initial` raises.
        """
        if session is None:
            return self._first(None)
        with session.lock:
            place = next(
                (key for key in (self.key, *self._renamed_from) if session.state.get(key, {}) != _NOTHING), None
            )
            if place is None:
                value = self._first(session)
                self.save(session, value)
                return value
            value = self._read(place, session.state[place])
            if place != self.key:
                session.state[self.key] = session.state.pop(place)
            return value

    def save(self, session: Session | None, value: T) -> None:
        """Put the value in the place of the session's; without a session nothing is kept.

        Raises:
            ValueError: it holds what is no JSON; the message names where. Nothing is written.
        """
        if session is None:
            return
        stored = plain_json(self._adapter.dump_python(value, mode="json", by_alias=False), self.key)
        with session.lock:
            session.state[self.key] = stored

    def update(self, session: Session | None, function: Callable[[T], T]) -> T:
        """Read, change and write as one step, whatever other threads do.

        Args:
            session: Whose value is changed.
            function: Given the value, returns the one to keep; the same object will do. It must be quick: meanwhile
                nothing else gets at the session's typed state. If it raises, nothing is written.

        Returns:
            What `function` returned.
        """
        if session is None:
            return function(self._first(None))
        with session.lock:
            value = function(self.get(session))
            self.save(session, value)
            return value

    def _first(self, session: Session | None) -> T:
        return self._model() if self._initial is None else self._initial(session)

    def _read(self, key: str, stored: object) -> T:
        """The bag holds JSON, so it is read as JSON: a strict model, too, takes a date from a string."""
        try:
            text = json.dumps(plain_json(stored, key))
            return self._adapter.validate_json(text, by_alias=True, by_name=True)
        except ValidationError as error:
            [fault, *_] = error.errors(include_url=False, include_input=False, include_context=False)
            path = ".".join(map(str, (key, *fault["loc"])))
            raise StateMismatch(f"the state {path!r} does not fit {self._model.__name__}: {fault['type']}") from None
        except ValueError as error:
            raise StateMismatch(f"the state {key!r} cannot be read: {error}") from None
