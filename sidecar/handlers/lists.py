"""`listAgents`, `listModels`, `listProviders`: what can be named in a request. No model is called for it."""

from protocol.agents import ProviderTypeInfo
from protocol.base import Empty
from protocol.state import ListAgentsResult, ListModelsResult, ListProvidersResult
from providers.registry import REGISTRY, ProviderType
from sidecar.agents.provider_types import installed_types

from .services import Call, Services


async def list_agents(params: Empty, call: Call, services: Services) -> ListAgentsResult:
    """The configured agents of the folder that sessions work in by default."""
    return ListAgentsResult(items=(await services.workspaces.of(None)).catalog.infos())


async def list_models(params: Empty, call: Call, services: Services) -> ListModelsResult:
    """The models that are known by configuration, installed, or on the lists of configured endpoints."""
    workspace = await services.workspaces.of(None)
    return ListModelsResult(items=tuple(await workspace.models.offered(workspace.catalog.models())))


async def list_providers(params: Empty, call: Call, services: Services) -> ListProvidersResult:
    """The provider types, those of installed packages too, with the JSON Schema of each one's config."""
    types = {**REGISTRY, **await installed_types()}
    return ListProvidersResult(items=tuple(_info(name, kind) for name, kind in types.items()))


def _info(name: str, kind: ProviderType) -> ProviderTypeInfo:
    schema = kind.factory.config_type.model_json_schema()
    return ProviderTypeInfo(type=name, description=kind.description, config_schema=schema)
