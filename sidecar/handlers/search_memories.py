"""`searchMemories`: what is remembered in a scope and fits a question, found as an agent's memory would find it."""

from protocol.memories import FoundMemory, SearchMemoriesParams, SearchMemoriesResult
from providers.api.memory import MemoryQuery

from .memory_files import memory_files
from .memory_wire import collection_of, item_of, scope_of, told
from .services import Call, Services


async def search_memories(params: SearchMemoriesParams, call: Call, services: Services) -> SearchMemoriesResult:
    """Best first; what says the same is one.

    Raises:
        StorageFailed: the memory cannot be searched now.
    """
    query = MemoryQuery(collection_of(params.collection), scope_of(params.scope), params.query, limit=params.limit)
    with told():
        if params.type == "file_memory":
            hits = await (await memory_files(services)).search(query)
        else:
            hits = await (await services.sessions.memory.ready()).search(query)
    return SearchMemoriesResult(
        items=tuple(
            FoundMemory.model_validate(
                {**item_of(hit.record), "score": hit.score, "count": hit.count if hit.count > 1 else None}
            )
            for hit in hits
        )
    )
