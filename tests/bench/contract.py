"""Holds what the sidecar says against the types of the contract. The order of events is `wire.EventChecker`'s."""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from protocol.methods import HOST_METHODS, METHODS, RUN_EVENT, SERVER_NOTIFICATIONS

_RESULTS = {method.name: [TypeAdapter[Any](shape) for shape in (method.result, *method.also)] for method in METHODS}
_PARAMS = {**{method.name: method.params for method in HOST_METHODS}, **SERVER_NOTIFICATIONS}
del _PARAMS[RUN_EVENT]  # the checker of events looks at those


def check_result(method: str, result: Any) -> None:
    """A result has every field that the contract promises, of its type; other methods' are passed over.

    Raises:
        AssertionError: it does not.
    """
    faults: list[str] = []
    for shape in _RESULTS.get(method, ()):
        try:
            shape.validate_python(result)
        except ValidationError as error:
            faults.append(str(error))
        else:
            return
    assert not faults, f"the result of {method}: {faults}"


def check_params(method: str, params: Any) -> None:
    """The same of the sidecar's own requests and notifications.

    Raises:
        AssertionError: a field is missing, or is of another type.
    """
    shape = _PARAMS.get(method)
    if shape is not None:
        try:
            shape.model_validate(params)
        except ValidationError as error:
            raise AssertionError(f"the params of {method}: {error}") from None
