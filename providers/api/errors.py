"""What a provider raises so that its host is told why. The text of any other exception may hold anything: it is not."""


class ProviderError(Exception):
    """A provider cannot do its work. The text is told to the host: it must repeat no secret and no one's words."""
