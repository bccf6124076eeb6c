"""What an entry of `mem0` may say, and that nothing of it tells a key. Nothing is started."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from providers import mem0_config
from providers.api.errors import ProviderError
from providers.api.provider import Surroundings
from providers.api.session import Session
from providers.mem0 import Mem0Provider
from providers.mem0_config import Mem0Config
from sidecar.errors import ConfigInvalid
from tests.bench.agent_run import plan_of

pytestmark = pytest.mark.skipif(find_spec("mem0") is None, reason="no mem0 here; .ci/run installs it")

LEAST = {
    "path": "memories",
    "llm": {"model": "m"},
    "embedder": {"model": "e"},
    "storageScope": {"userId": {"fromState": "user"}},
}


def entry(**config: Any) -> dict[str, Any]:
    return {"type": "mem0", "config": {**LEAST, **config}}


def provider(**config: Any) -> Mem0Provider:
    return Mem0Provider("mem0", Mem0Config.model_validate({**LEAST, **config}), Surroundings(cwd="/"))


def test_a_failure_of_it_is_a_warning_and_its_memories_stand_before_the_input() -> None:
    (bound,) = plan_of(entry()).providers

    assert (bound.source_id, bound.on_error, bound.position) == ("mem0", "warn", "before_input")


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"path": "../x"}, "no step of it may be '..'"),
        ({"llm": {}}, "config.llm.model"),
        ({"llm": {"model": "m", "apiKey": "hunter2"}}, "config.llm.apiKey"),
        ({"llm": {"model": "m", "baseUrl": "https://u:hunter2@h/v1"}}, "api_key_env"),
        ({"llm": {"model": "m", "baseUrl": "hunter2"}}, "it must be http"),
        ({"embedder": {"model": "e", "dimensions": 0}}, "config.embedder.dimensions"),
        ({"storageScope": {}}, "a scope needs a key"),
        ({"storageScope": {"user": "x"}}, "did you mean"),
        ({"storageScope": {"userId": "x", "applicationId": "app"}}, "give each its own path"),
        ({"searchScope": {"agentId": "agent"}}, "searchScope.agentId must be a key of storageScope"),
        ({"searchScope": {"userId": "bob"}}, "searchScope.userId must be a key of storageScope, from the same place"),
        ({"maxResult": 3}, "did you mean 'maxResults'?"),
    ],
)
def test_a_faulty_entry_is_refused_and_no_secret_repeated(config: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        plan_of(entry(**config))

    assert named in refused.value.message
    assert "hunter2" not in f"{refused.value.message} {vars(refused.value)}"


def test_without_the_extra_an_agent_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mem0_config, "find_spec", lambda _: None)

    with pytest.raises(ConfigInvalid, match=r"pip install 'agent-sidecar\[mem0\]'"):
        plan_of(entry())


def test_whose_memories_they_are_is_settled_when_the_session_begins() -> None:
    session = Session("s", state={"user": "ann"})
    searching = provider(
        storageScope={"userId": {"fromState": "user"}, "sessionId": {"fromSession": "sessionId"}},
        searchScope={"userId": {"fromState": "user"}},
    )

    settled = searching.settle(session, "coder")
    forked = searching.settle(Session("t", state={"user": "bob"}), "coder", settled)

    assert settled == {"storageScope": {"userId": "ann", "sessionId": "s"}, "searchScope": {"userId": "ann"}}
    assert forked == {"storageScope": {"userId": "ann", "sessionId": "t"}, "searchScope": {"userId": "ann"}}
    with pytest.raises(ProviderError, match="userId is missing or empty"):
        searching.settle(Session("s"), "coder")


def test_a_key_that_is_not_set_is_told_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEM0_TEST_KEY", raising=False)

    with pytest.raises(ProviderError, match="MEM0_TEST_KEY is not set"):
        Mem0Config.model_validate({**LEAST, "llm": {"model": "m", "apiKeyEnv": "MEM0_TEST_KEY"}}).llm.mem0()


def test_schema_shows_no_place_for_a_key() -> None:
    schema = str(Mem0Config.model_json_schema())

    assert "apiKeyEnv" in schema
    assert "'apiKey'" not in schema


def test_paths_are_absolute_or_below_the_working_directory() -> None:
    assert Mem0Config.model_validate({**LEAST, "path": str(Path("/somewhere/memories"))}).path
