"""`listMemories`: what is remembered in a scope, page by page; whichever process has written it."""

from protocol.memories import ListMemoriesParams, ListMemoriesResult, MemoryItem
from providers.api.memory import MemoryPage
from sidecar.errors import InvalidParams

from .memory_files import memory_files
from .memory_wire import collection_of, item_of, scope_of, told
from .services import Call, Services


async def list_memories(params: ListMemoriesParams, call: Call, services: Services) -> ListMemoriesResult:
    """Paged by count and by bytes.

    Raises:
        InvalidParams: the cursor is none of these.
        StorageFailed: the memory cannot be read now.
    """
    try:
        with told():
            if params.type == "file_memory":
                files = await memory_files(services)
                page = await files.page(
                    scope_of(params.scope), params.cursor, services.pages.items(params), services.pages.bytes
                )
            else:
                page = await _page(params, services)
    except ValueError:
        raise InvalidParams("the cursor is not one of listMemories", [{"path": "cursor", "message": "bad"}]) from None
    items = tuple(MemoryItem.model_validate(item_of(record)) for record in page.items)
    return ListMemoriesResult(items=items, next_cursor=page.next)


async def _page(params: ListMemoriesParams, services: Services) -> MemoryPage:
    """A page that is small enough: a smaller one is read where it is not."""
    limit = services.pages.items(params)
    while True:
        page = await services.sessions.memory.page(
            collection_of(params.collection), scope_of(params.scope), params.cursor, limit
        )
        size = sum(len(record.text.encode()) for record in page.items)
        if size <= services.pages.bytes or len(page.items) <= 1:
            return page
        limit = max(1, min(len(page.items) - 1, len(page.items) * services.pages.bytes // size))
