"""`deleteMemories`: erases some of what is remembered in a scope, or all of it. Transcripts are no memory."""

from protocol.memories import DeleteMemoriesParams, DeleteMemoriesResult
from sidecar.sessions.forgetting import forget

from .memory_files import memory_files
from .memory_wire import collection_of, scope_of, told
from .services import Call, Services


async def delete_memories(params: DeleteMemoriesParams, call: Call, services: Services) -> DeleteMemoriesResult:
    """On return nothing finds them any more, nor does an explanation of an earlier run show them.

    Raises:
        StorageFailed: not all of it could be erased now; the same request again erases the rest.
    """
    scope, memory_ids = scope_of(params.scope), params.memory_ids
    with told():
        if params.type == "file_memory":
            deleted = await (await memory_files(services)).delete(scope, memory_ids)
        else:
            deleted = await forget(services.sessions.memory, collection_of(params.collection), scope, memory_ids)
    return DeleteMemoriesResult(deleted=deleted)
