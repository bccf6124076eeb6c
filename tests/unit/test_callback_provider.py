"""A provider of functions that a configuration names: each session gets one of its own, under its entry's names."""

from typing import Any

import pytest

from protocol.agents import RunOptions
from protocol.messages import Source, text_message
from providers.api.callbacks import CallbackProvider
from providers.api.context import SessionContext
from providers.api.provider import ContextProvider, Surroundings
from providers.api.session import Session
from providers.api.simple import SimpleConfig
from providers.plugins import imported
from providers.registry import ProviderType

PLUGIN = """
from providers.api.provider import ContextProvider


def provide(request):
    return request.messages


provider = ContextProvider.of("own", provide=provide, provide_sources=["notes"])
"""


@pytest.fixture(scope="module")  # Python holds one module of a name
def kind(tmp_path_factory: pytest.TempPathFactory) -> ProviderType:
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "plug_functions.py").write_text(PLUGIN)
    return imported("plug_functions:provider", [folder])


async def given(provider: ContextProvider) -> SessionContext:
    """A run in which a history and notes were added before the provider was asked."""
    context = SessionContext(session_id="s", input_messages=[text_message("user", "input")], options=RunOptions())
    context.extend_messages("notes", [text_message("user", "a note")])
    context.extend_messages("rules", [text_message("user", "a rule")])
    nobody: Any = None
    await provider.before_run(agent=nobody, session=Session("s"), context=context, state={})
    return context


async def test_it_has_the_names_of_its_entry_and_calls_the_functions_as_they_were_given(kind: ProviderType) -> None:
    provider = kind.factory("entry", SimpleConfig(), Surroundings(state_key="corner"))

    context = await given(provider)

    assert (provider.source_id, provider.state_key) == ("entry", "corner")
    assert [message.text for message in context.context_messages["entry"]] == ["a note"]
    assert provider.takes_part("beforeRun")
    assert not provider.takes_part("afterRun")


async def test_sources_of_its_entry_come_before_its_own(kind: ProviderType) -> None:
    config = kind.factory.config_type.model_validate({"provideSources": ["rules"]})

    context = await given(kind.factory("entry", config, Surroundings()))

    assert [message.text for message in context.context_messages["entry"]] == ["a rule"]


def test_every_session_gets_one_of_its_own(kind: ProviderType) -> None:
    assert kind.factory("a", SimpleConfig(), None) is not kind.factory("a", SimpleConfig(), None)


async def test_what_it_adds_is_attributed_as_ever() -> None:
    same = CallbackProvider("p", provide=lambda request: "Be kind.").as_type()("p")

    [instruction] = (await given(same)).instructions
    assert instruction.source == Source(type="provider", source_id="p", source_type="CallbackProvider")
