"""A takeaway: its menu, how to order from it, and two small providers. What users like, memory knows, not this file."""

from dataclasses import dataclass
from typing import Annotated, Final, cast

from protocol.messages import Message, text_message
from providers.api.context import SessionContext
from providers.api.ports import AgentView
from providers.api.provider import ContextProvider
from providers.api.session import Session, State
from providers.api.simple import ProvideRequest, SimpleConfig, SimpleProvider
from providers.api.tool import ToolError, tool

MAX_PORTIONS: Final = 3


@dataclass(frozen=True, slots=True)
class Dish:
    """What is on the menu."""

    name: str
    is_meat: bool
    is_spicy: bool = False

    @property
    def line(self) -> str:
        """As the menu has it."""
        return f"{self.name} ({'荤' if self.is_meat else '素'}{'、辣' if self.is_spicy else ''})"


MENU: Final = {
    dish.name: dish
    for dish in (
        Dish("辣椒炒肉", is_meat=True, is_spicy=True),
        Dish("剁椒鱼头", is_meat=True, is_spicy=True),
        Dish("番茄炒蛋", is_meat=True),
        Dish("清蒸鲈鱼", is_meat=True),
        Dish("清炒菜心", is_meat=False),
        Dish("酸辣土豆丝", is_meat=False, is_spicy=True),
        Dish("西芹百合", is_meat=False),
    )
}


@tool
def get_menu() -> list[str]:
    """提取外卖菜单。"""
    return [dish.line for dish in MENU.values()]


@tool
def place_order(dishes: Annotated[dict[str, int], "菜名和份数: 至少一荤一素、总共最多三份。"]) -> str:
    """外卖下单。"""
    # What can be checked is checked here: an instruction alone is only a wish.
    unknown = [name for name in dishes if name not in MENU]
    if unknown:
        raise ToolError(f"菜单上没有: {'、'.join(unknown)}")
    if min(dishes.values(), default=0) < 1 or sum(dishes.values()) > MAX_PORTIONS:
        raise ToolError(f"每道菜至少一份、总共最多 {MAX_PORTIONS} 份。")
    if {MENU[name].is_meat for name in dishes} != {True, False}:
        raise ToolError("至少一荤一素。")
    return "、".join(f"{name} {count} 份" for name, count in dishes.items())


class AdditionalMessageConfig(SimpleConfig):
    """What is said."""

    text: str


class AdditionalMessageProvider(SimpleProvider):
    """Says one thing more on the user's behalf, in every run. A memory that comes after it can search with it."""

    config_type = AdditionalMessageConfig

    async def provide(self, request: ProvideRequest) -> Message:
        """The message."""
        return text_message("user", cast("AdditionalMessageConfig", self.config).text)


class TrackingProvider(ContextProvider):
    """Tells the host what providers before it have put before the model: messages, and the tools they offer."""

    async def before_run(self, *, agent: AgentView, session: Session, context: SessionContext, state: State) -> None:
        """Add nothing."""
        # Standard output is the protocol's; a provider has `progress` to speak to its host.
        for number, message in enumerate(context.get_messages(include_input=True), 1):
            context.progress(self, f"Message {number} ({message.role}): {message.text}")
        for offered in context.tools:
            if offered.source.type == "provider":
                schema = offered.tool.input_schema
                context.progress(self, f"Tool {offered.tool.name}: {offered.tool.description}", schema)
