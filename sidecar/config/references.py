"""Names in a configuration that must be those of other parts of it: agents and endpoints."""

from collections.abc import Iterator

from .issues import Issue, nearest
from .keypath import KeyPath
from .model import Config


def dangling_references(config: Config) -> Iterator[Issue]:
    """The names that lead nowhere."""
    agents = sorted({"default", *config.agents})
    if config.default_agent not in agents:
        yield Issue(("default_agent",), f"no agent {config.default_agent!r}{nearest(config.default_agent, agents)}")
    for name, agent in config.agents.items():
        if agent.name not in (None, name):
            yield Issue(("agents", name, "name"), f"must be {name!r}, the name of its table, or be left out")
    for path, model in _models(config):
        endpoint, colon, model_id = model.partition(":")
        if not (endpoint and colon and model_id):
            yield Issue(path, "must be endpoint:model, for example openai:gpt-4.1-mini")
        elif endpoint not in config.endpoints:
            yield Issue(path, f"no endpoint {endpoint!r}{nearest(endpoint, sorted(config.endpoints))}")


def _models(config: Config) -> Iterator[tuple[KeyPath, str]]:
    if config.default_model is not None:
        yield ("default_model",), config.default_model
    for name, agent in config.agents.items():
        if agent.model is not None:
            yield ("agents", name, "model"), agent.model
        if agent.options is not None and agent.options.model is not None:
            yield ("agents", name, "options", "model"), agent.options.model
