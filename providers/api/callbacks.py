"""A provider made of functions; `ContextProvider.of` makes one, and a configuration may name it."""

import inspect
from collections.abc import Awaitable, Callable

from .filters import Sources
from .provider import Phase, ProviderConfig, Surroundings
from .simple import Contribution, Exchange, ProvideRequest, SimpleProvider

Provide = Callable[[ProvideRequest], Contribution | Awaitable[Contribution]]
Store = Callable[[Exchange], Awaitable[None] | None]


class CallbackProvider(SimpleProvider):
    """Calls one function before a run and one after it; either may be left out."""

    def __init__(
        self,
        source_id: str,
        config: ProviderConfig | None = None,
        surroundings: Surroundings | None = None,
        *,
        provide: Provide | None = None,
        store: Store | None = None,
        provide_sources: Sources | None = None,
        store_request_sources: Sources | None = None,
        store_response_sources: Sources | None = None,
    ) -> None:
        super().__init__(
            source_id,
            config,
            surroundings,
            provide_sources=provide_sources,
            store_request_sources=store_request_sources,
            store_response_sources=store_response_sources,
        )
        if provide is None and store is None:
            raise ValueError(f"provider {source_id!r} has neither provide nor store, and would do nothing")
        _check(source_id, "provide", "request", provide)
        _check(source_id, "store", "exchange", store)
        self._provide = provide
        self._store = store
        self._sources = (provide_sources, store_request_sources, store_response_sources)

    def as_type(self) -> "type[CallbackProvider]":
        """The class of providers with these functions: what a configuration means that names one as `module:name`."""
        provide, store = self._provide, self._store
        asked, request, response = self._sources

        class Same(CallbackProvider):
            """Calls one function before a run and one after it."""

            def __init__(
                self, source_id: str, config: ProviderConfig | None = None, surroundings: Surroundings | None = None
            ) -> None:
                super().__init__(
                    source_id,
                    config,
                    surroundings,
                    provide=provide,
                    store=store,
                    provide_sources=asked,
                    store_request_sources=request,
                    store_response_sources=response,
                )

        Same.__name__ = CallbackProvider.__name__  # what its messages are attributed to
        return Same

    def takes_part(self, phase: Phase) -> bool:
        """Whether it was given a function for that."""
        return (self._provide if phase == "beforeRun" else self._store) is not None

    async def provide(self, request: ProvideRequest) -> Contribution:
        """What the function returns."""
        if self._provide is None:
            return None
        result = self._provide(request)
        return await result if inspect.isawaitable(result) else result

    async def store(self, exchange: Exchange) -> None:
        """Call the function."""
        if self._store is None:
            return
        result = self._store(exchange)
        if result is not None:
            await result


def _check(source_id: str, name: str, argument: str, function: object) -> None:
    """Refuse when the provider is made what would fail in every run."""
    if function is None:
        return
    wanted = f"provider {source_id!r}: {name} must be a function ({argument})"
    if not callable(function):
        raise TypeError(f"{wanted}, not a {type(function).__name__}")
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        raise TypeError(f"{wanted}: {error}") from None
