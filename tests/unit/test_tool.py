"""A tool as an object: its name, what the model is told, its instances, and how often it may be called."""

import gc
import subprocess
import sys
import threading
import weakref
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from providers.api.ports import ToolSpec
from providers.api.tool import ArgumentsError, FunctionTool, ToolError, tool, tool_from_schema


@tool
def double(number: int) -> int:
    """Double a number,
    exactly.

    Not told to the model.
    """
    return number * 2


class Shop:
    def __init__(self, city: str = "") -> None:
        self.city = city

    @tool
    def price(self, item: str) -> str:
        """Tell a price."""
        return f"{item} in {self.city}"

    @staticmethod
    @tool
    def hours(day: str) -> str:
        return day


def test_a_function_gives_its_name_and_the_first_paragraph_of_its_docstring() -> None:
    assert (double.name, double.description) == ("double", "Double a number, exactly.")
    assert double.spec() == ToolSpec("double", "Double a number, exactly.", double.input_schema)
    assert double.spec() is double.spec()


def test_what_the_decorator_is_told_counts_more_than_the_function() -> None:
    @tool(name="twice", description="Twice.", title="Twice!", kind="read", approval_mode="always_require")
    def made(number: int) -> int:
        """Something else."""
        return number

    assert (made.name, made.description, made.title, made.kind) == ("twice", "Twice.", "Twice!", "read")
    assert made.approval_mode == "always_require"


def test_a_tool_can_still_be_called_as_the_function_that_it_was() -> None:
    assert double(4) == 8
    assert Shop("Rome").price("soap") == "soap in Rome"


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 65, "a\n", "a.b"])
def test_a_name_that_models_refuse_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="give name="):
        tool(double.function, name=name)


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(ValueError, match="give name="):
        tool(lambda: 1)
    assert tool(lambda: 1, name="one").name == "one"


@pytest.mark.parametrize("no_function", [double, staticmethod(len), classmethod(len), 3])
def test_only_a_plain_function_becomes_a_tool(no_function: Any) -> None:
    with pytest.raises(TypeError, match="plain function"):
        tool(no_function)


def test_a_generator_is_no_tool() -> None:
    def some() -> Any:
        yield 1

    async def others() -> Any:
        yield 1

    for generator in (some, others):
        with pytest.raises(ValueError, match="generator"):
            tool(generator)


def test_async_functions_are_known_through_partials_and_callable_objects() -> None:
    async def wait(seconds: int, note: str) -> None:
        """Wait."""

    class Waiter:
        async def __call__(self, seconds: int) -> None:
            """Wait longer."""

    filled = tool(partial(wait, note="x"))
    called = tool(Waiter())
    assert (filled.name, filled.description, filled.is_async) == ("wait", "Wait.", True)
    assert (called.name, called.description, called.is_async) == ("Waiter", "Wait longer.", True)
    assert not double.is_async


def test_a_method_is_a_tool_of_its_instance_and_the_same_one_each_time() -> None:
    rome, oslo = Shop("Rome"), Shop("Oslo")
    tool_of_rome = rome.price
    assert isinstance(tool_of_rome, FunctionTool)
    assert rome.price is tool_of_rome
    assert rome.price is not oslo.price
    assert tool_of_rome(**tool_of_rome.bind({"item": "soap"})) == "soap in Rome"
    assert "self" not in tool_of_rome.input_schema["properties"]
    assert Shop.price.takes_self
    assert not tool_of_rome.takes_self


def test_equal_instances_that_take_no_attributes_have_tools_of_their_own() -> None:
    @dataclass(slots=True)  # neither hashable nor weakly referable, and equal to any other of its value
    class Box:
        number: int

        @tool
        def add(self) -> int:
            self.number += 1
            return self.number

    one, other = Box(1), Box(1)
    assert one.add is not other.add
    assert one.add() == 2
    assert other.number == 1


def test_an_instance_whose_tool_was_taken_is_freed() -> None:
    shop = Shop("Rome")
    taken = shop.price
    watch = weakref.ref(shop)
    del shop
    gc.collect()
    assert watch() is not None  # its tool needs it
    del taken
    gc.collect()
    assert watch() is None


def test_a_static_method_and_a_tool_kept_in_a_class_are_not_bound() -> None:
    class Keeper:
        kept = double

    assert Keeper().kept is double
    assert Shop().hours("monday") == "monday"


def test_a_tool_of_a_base_class_is_bound_beside_the_one_that_overrides_it() -> None:
    class Discount(Shop):
        @tool
        def price(self, item: str) -> str:
            return super().price(item) + ", less"

    assert Discount("Rome").price("soap") == "soap in Rome, less"


def test_a_call_too_many_is_refused_in_words_for_the_model() -> None:
    limited = tool(double.function, max_invocations=2)
    limited.count()
    limited.count()
    with pytest.raises(ToolError, match="'double' was called 2 times"):
        limited.count()
    assert limited.invocations == 2


def test_a_tool_that_failed_too_often_is_refused() -> None:
    limited = tool(double.function, max_invocation_exceptions=1)
    limited.count()
    limited.count()
    limited.count_failure()
    with pytest.raises(ToolError, match="failed 1 times"):
        limited.count()


def test_each_instance_and_each_copy_has_a_count_of_its_own() -> None:
    class Once:
        @tool(max_invocations=1)
        def act(self) -> None: ...

    first, second = Once(), Once()
    tool_of_first = first.act
    tool_of_first.count()
    second.act.count()
    replace(tool_of_first, approval_mode="always_require").count()
    with pytest.raises(ToolError):
        tool_of_first.count()


def test_calls_from_many_threads_are_all_counted() -> None:
    limited = tool(double.function, max_invocations=150)
    refused: list[ToolError] = []

    def call() -> None:
        for _ in range(50):
            try:
                limited.count()
            except ToolError as error:
                refused.append(error)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (limited.invocations, len(refused)) == (150, 50)


@pytest.mark.parametrize("limit", ["max_invocations", "max_invocation_exceptions"])
def test_a_limit_of_none_at_all_is_refused(limit: str) -> None:
    with pytest.raises(ValueError, match=limit):
        tool(double.function, **{limit: 0})


def test_the_hash_follows_the_name_and_the_schema_and_nothing_else() -> None:
    def other(number: int) -> None: ...

    def changed(number: str) -> None: ...

    same = tool(other, name="double", description="Another.")
    assert same.schema_hash == double.schema_hash
    assert len(double.schema_hash) == 64
    assert tool(other).schema_hash != double.schema_hash
    assert tool(changed, name="double").schema_hash != double.schema_hash


def test_the_hash_does_not_depend_on_the_order_of_the_schema() -> None:
    one, other = (
        tool_from_schema(None, name="a", description="", schema={"properties": {"x": told}})
        for told in ({"type": "string", "minLength": 1}, {"minLength": 1, "type": "string"})
    )
    assert one.schema_hash == other.schema_hash


def test_a_declared_tool_has_nothing_to_call_but_checks_its_arguments() -> None:
    declared = tool_from_schema(None, name="ask", description="Ask.", schema={"required": ["q"]})
    assert declared.is_declaration_only
    assert declared.bind({"q": 1}) == {"arguments": {"q": 1}}
    with pytest.raises(ArgumentsError, match="'q' is a required property"):
        declared.bind({})
    with pytest.raises(TypeError, match="only declared"):
        declared()


def test_a_tool_from_a_schema_takes_its_arguments_whole_and_its_context() -> None:
    async def forward(arguments: dict[str, Any], context: object) -> None: ...

    made = tool_from_schema(forward, name="host_tool", description="", title="T", approval_mode="always_require")
    assert (made.context_parameter, made.is_async, made.title) == ("context", True, "T")
    assert made.approval_mode == "always_require"
    assert made.bind({}) == {"arguments": {}}
    with pytest.raises(ArgumentsError):
        made.bind({"unknown": 1})


def test_a_hosted_tool_says_so_to_the_model() -> None:
    hosted = tool_from_schema(None, name="web_search", description="", hosted="web_search")
    assert hosted.spec().hosted == "web_search"


TOOLS_WITHOUT_SCHEMA = """
import sys
from providers.api.tool import tool, tool_from_schema

tool(lambda text: text, name="say").bind({"text": "x"})
tool_from_schema(None, name="web_search", description="", hosted="web_search")
print("jsonschema" in sys.modules)
"""


def test_tools_without_a_json_schema_do_not_load_what_checks_them() -> None:
    ended = subprocess.run([sys.executable, "-c", TOOLS_WITHOUT_SCHEMA], capture_output=True, text=True, timeout=60)
    assert (ended.stdout, ended.stderr) == ("False\n", "")
