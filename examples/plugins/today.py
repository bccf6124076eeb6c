"""A context provider of one's own: it tells the model today's date, which no model knows by itself."""

from datetime import datetime
from typing import cast
from zoneinfo import ZoneInfo, available_timezones

from pydantic import field_validator

from providers.api.context import SessionContext
from providers.api.ports import AgentView
from providers.api.provider import ContextProvider, ProviderConfig
from providers.api.session import Session, State


class TodayConfig(ProviderConfig):
    """Where it is today."""

    time_zone: str = "UTC"
    """A name such as `Europe/Paris`."""

    @field_validator("time_zone")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in available_timezones():
            raise ValueError(f"there is no time zone {name!r}")
        return name


class TodayProvider(ContextProvider):
    """Adds one line with today's date to the instructions of each run."""

    config_type = TodayConfig

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Look at the clock."""
        now = datetime.now(ZoneInfo(cast("TodayConfig", self.config).time_zone))
        context.extend_instructions(self, f"Today is {now:%A, %Y-%m-%d}.")
