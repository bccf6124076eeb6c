"""A memory of two facts about the user, described by a pydantic model."""

from pydantic import BaseModel, Field

from providers.structured_memory import StructuredMemoryProvider


class UserInfo(BaseModel):
    """What is to be known of the user; `None` is not known yet."""

    name: str | None = None
    age: int | None = Field(default=None, ge=0, le=150)


class UserInfoMemory(StructuredMemoryProvider[UserInfo]):
    """Asks for name and age until it knows them; a value counts only if the user really said it."""

    model = UserInfo
