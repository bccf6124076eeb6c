"""What an entry of `redis_history` may say, and that nothing of it tells a password. No server is needed."""

from typing import Any

import pytest

from providers import redis_history_server
from providers.api.history import HistoryError
from providers.redis_history import KEY_PREFIX, RedisHistoryConfig, RedisHistoryProvider
from sidecar.errors import ConfigInvalid
from tests.bench.agent_run import plan_of

pytest.importorskip("redis", reason="no redis here: pip install 'agent-sidecar[redis]'")

URL = "redis://localhost:6379/0"


def entry(**config: Any) -> dict[str, Any]:
    return {"type": "redis_history", "config": config}


def test_a_url_is_all_that_it_needs() -> None:
    (bound,) = plan_of(entry(url=URL)).providers

    assert isinstance(bound.provider, RedisHistoryProvider)
    assert (bound.source_id, bound.on_error, bound.loads_history) == ("redis_history", "fail", True)
    assert bound.provider.config == RedisHistoryConfig(url=URL, key_prefix=KEY_PREFIX, max_messages=None)


def test_flags_are_those_of_any_history() -> None:
    (bound,) = plan_of(entry(url=URL, loadMessages=False, storeContextFrom=["rag"])).providers

    assert not bound.loads_history
    assert isinstance(bound.provider, RedisHistoryProvider)
    assert bound.provider.keeps_context


@pytest.mark.parametrize(
    "url",
    ["redis://h", "redis://user@h:1/3", "rediss://[::1]:6380?ssl_ca_certs=/ca.pem&db=2", "unix:///run/r.sock?db=1"],
)
def test_these_are_servers(url: str) -> None:
    config = RedisHistoryConfig(url=url)

    assert config.address() == (url, None)
    assert url in config.named


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({}, "give either url or url_env"),
        ({"url": URL, "urlEnv": "REDIS_URL"}, "give either url or url_env"),
        ({"urlEnv": "REDIS_URL", "passwordEnv": "X"}, "password_env goes with url"),
        ({"urlEnv": "not a name"}, "config.urlEnv"),
        ({"url": URL, "keyPrefix": "with space"}, "config.keyPrefix"),
        ({"url": URL, "maxMessages": 0}, "config.maxMessages"),
        ({"url": URL, "maxMessage": 1}, "did you mean 'maxMessages'?"),
        ({"url": "redis://:hunter2@h"}, "password_env"),
        ({"url": "redis://user:hunter2@h:6379/0"}, "password_env"),
        ({"url": "redis://h?password=hunter2"}, "not 'password'"),
        ({"url": "unix:///run/r.sock?password=hunter2"}, "not 'password'"),
        ({"url": "redis://h?decode_responses=hunter2"}, "not 'decode_responses'"),
        ({"url": "http://hunter2"}, "redis://HOST:PORT/DB"),
        ({"url": "redis://hunter2:port"}, "redis://HOST:PORT/DB"),
        ({"url": "redis:///hunter2"}, "redis://HOST:PORT/DB"),
        ({"url": "redis://h ost/hunter2"}, "redis://HOST:PORT/DB"),
        ({"url": "unix://?db=hunter2"}, "redis://HOST:PORT/DB"),
        ({"url": "redis://h/hunter2"}, "must be a number"),
        ({"url": "redis://h?db=hunter2"}, "must be a number"),
        ({"url": ""}, "redis://HOST:PORT/DB"),
    ],
)
def test_a_faulty_entry_is_refused_and_no_secret_repeated(config: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        plan_of(entry(**config))

    assert named in refused.value.message
    assert "hunter2" not in f"{refused.value.message} {vars(refused.value)}"


@pytest.mark.parametrize("value", [None, " ", "http://hunter2", "redis://h?password=hunter2"])
async def test_a_variable_without_a_url_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("REDIS_URL", raising=False)
    if value is not None:
        monkeypatch.setenv("REDIS_URL", value)
    history = RedisHistoryProvider("redis_history", RedisHistoryConfig(url_env="REDIS_URL"))

    with pytest.raises(HistoryError, match="the environment variable REDIS_URL") as told:
        await history.get_messages("s", state={})

    assert "hunter2" not in str(told.value)


async def test_a_password_that_is_not_set_is_told_by_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REDIS_PASSWORD", raising=False)
    history = RedisHistoryProvider("redis_history", RedisHistoryConfig(url=URL, password_env="REDIS_PASSWORD"))

    with pytest.raises(HistoryError, match="REDIS_PASSWORD is not set"):
        await history.get_messages("s", state={})


def test_without_the_extra_an_agent_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_history_server, "find_spec", lambda _: None)

    with pytest.raises(ConfigInvalid, match=r"pip install 'agent-sidecar\[redis\]'"):
        plan_of(entry(url=URL))
