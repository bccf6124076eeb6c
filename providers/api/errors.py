"""What a provider raises so that its host is told why. The text of any other exception may hold anything: it is not."""


class ProviderError(Exception):
    """A provider cannot do its work. The text is told to the host: it must repeat no secret and no one's words."""


class DuplicateToolError(ProviderError, ValueError):
    """Another tool of that name is offered already."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Duplicate tool name {name!r}")
