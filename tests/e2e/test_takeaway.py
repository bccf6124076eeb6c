"""The takeaway of `examples/takeaway`, with a model that obeys what it is shown, and likes chillies above all.

It leaves out spicy dishes only if the request says that somebody cannot eat them, and the last order only if the
request shows it with its date. So what it orders tells what memory has put before it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from tests.bench.fake_model import TC, F, FakeModel, Recorded
from tests.bench.host import FakeHost

EXAMPLE = Path(__file__).parents[2] / "examples" / "takeaway"

FIRST = "帮我点一份外卖。一荤一素。我不能吃辣。"
LATER = "帮我点一份外卖。"
MEAT = ("辣椒炒肉", "剁椒鱼头", "番茄炒蛋", "清蒸鲈鱼")
VEGETABLES = ("酸辣土豆丝", "清炒菜心", "西芹百合")
SPICY = frozenset({"辣椒炒肉", "剁椒鱼头", "酸辣土豆丝"})
DATED = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d), assistant(?:, \d+ times)?\] (.*)$", re.MULTILINE)


def dishes_of(text: str) -> frozenset[str]:
    return frozenset(dish for dish in (*MEAT, *VEGETABLES) if dish in text)


def favourite(shown: str) -> tuple[str, str]:
    """What the model likes best of what it may order, as far as it knows."""
    orders = [(at, dishes_of(text)) for at, text in DATED.findall(shown) if dishes_of(text)]
    last = max(reversed(orders), key=lambda order: order[0])[1] if orders else None  # of one minute, what stands last
    known = [dishes for dishes in product(MEAT, VEGETABLES) if "不能吃辣" not in shown or not SPICY & set(dishes)]
    return next((dishes for dishes in known if frozenset(dishes) != last), known[0])


def obeying(request: Recorded) -> list[Any]:
    """Asks for the menu, orders, and says what it has ordered."""
    match list(request.tool_results.values()):
        case []:
            return [TC(0, "menu", "get_menu", "{}"), F("tool_calls")]
        case [_]:
            shown = "\n".join(message["content"] for message in request.messages if message["role"] == "user")
            chosen = dict.fromkeys(favourite(shown), 1)
            return [TC(0, "order", "place_order", json.dumps({"dishes": chosen})), F("tool_calls")]
        case [*_, done]:
            return [f"已经帮您下单: {done}。祝您用餐愉快!"]


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy that nobody else may write to, whatever the umask of the checkout."""
    copy = tmp_path / "takeaway"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    copy.chmod(0o755)
    return copy


@pytest.fixture
def start(start_host: Any, example: Path, model: FakeModel) -> Any:
    """Starts the takeaway with the model that obeys; by words and vectors, or by words alone."""
    model.otherwise(obeying)

    async def started(embedder: str = "none") -> FakeHost:
        config = example / "sidecar.toml"
        config.write_text(f'{config.read_text(encoding="utf-8")}\n[embeddings]\nembedder = "{embedder}"\n', "utf-8")
        return await start_host(args=("--config", str(config)), env=model.environment, cwd=example)

    return started


async def ordered(host: FakeHost, user: str, text: str, agent: str = "takeaway") -> frozenset[str]:
    """The dishes that a user gets, in a session of their own."""
    session = await host.create_session(agent=agent, model="openai:fake", state={"user_id": user})
    result = await session.run(text)
    assert result["status"] == "completed"
    assert result["warnings"] == []
    return dishes_of(result["text"])


@pytest.mark.parametrize("embedder", ["none", "auto"])
async def test_alice_never_gets_a_spicy_dish_and_never_the_same_twice_in_a_row(start: Any, embedder: str) -> None:
    host: FakeHost = await start(embedder)

    orders = [await ordered(host, "Alice", text) for text in [FIRST, *[LATER] * 7]]

    assert all(len(order & set(MEAT)) == len(order & set(VEGETABLES)) == 1 for order in orders)
    assert not any(order & SPICY for order in orders)
    assert all(one != next_one for one, next_one in pairwise(orders))


async def test_bob_gets_his_chillies_and_never_the_same_twice_in_a_row(start: Any) -> None:
    host: FakeHost = await start()
    await ordered(host, "Alice", FIRST)

    orders = [await ordered(host, "Bob", LATER) for _ in range(4)]

    assert all(order & SPICY for order in orders)
    assert all(one != next_one for one, next_one in pairwise(orders))


async def test_without_a_memory_the_model_would_order_the_same_again_and_spicy(start: Any) -> None:
    """What the tests above could not tell from luck: for strangers the model makes both mistakes."""
    host: FakeHost = await start()

    orders = {await ordered(host, stranger, LATER) for stranger in ("Carol", "Dave", "Eve")}

    assert orders == {frozenset({"辣椒炒肉", "酸辣土豆丝"})}


async def test_what_alice_cannot_eat_and_her_last_order_stand_before_the_model_with_their_dates(
    start: Any, model: FakeModel
) -> None:
    host: FakeHost = await start()
    orders = [await ordered(host, "Alice", text) for text in [FIRST, *[LATER] * 4]]

    found, _, latest = model.last_request.last_user_text.partition("The latest, in order:\n")
    assert re.search(rf"^\[[\d :-]+, user\] {FIRST}$", found, re.MULTILINE)
    [(_, last)] = DATED.findall(latest)
    assert dishes_of(last) == orders[-2]


async def test_the_additional_message_is_shown_searched_with_and_not_remembered(start: Any, model: FakeModel) -> None:
    """Seed 004, section 7."""
    host: FakeHost = await start()
    session = await host.create_session(agent="takeaway", model="openai:fake", state={"user_id": "Alice"})
    await session.run("记住我的口味偏好: 清淡。")

    await ordered(host, "Alice", "hello")

    second = model.requests[-1].messages
    reminder, asked, memory = [message["content"] for message in second if message["role"] == "user"]
    assert "口味偏好" in reminder
    assert asked == "hello"
    assert "记住我的口味偏好: 清淡。" in memory  # "hello" alone has no word of it
    assert reminder not in memory


@pytest.mark.parametrize(("agent", "told"), [("tracked", "Message 1 (user)"), ("on_demand", "Tool Search: ")])
async def test_the_tracking_provider_and_explain_run_tell_the_same(start: Any, agent: str, told: str) -> None:
    """Seed 004, section 5."""
    host: FakeHost = await start()
    await ordered(host, "Alice", FIRST, agent)
    session = await host.create_session(agent=agent, model="openai:fake", state={"user_id": "Alice"})

    result = await session.run(LATER)

    tracked = "\n".join(event["data"]["message"] for event in host.events(session.id, "provider.progress"))
    shown = (await host.request("explainRun", {"sessionId": session.id, "runId": result["runId"]}))["calls"][0]
    [added] = [one for one in [*shown["messages"], *shown["tools"]] if one["source"].get("sourceId") == "memory"]
    assert told in tracked
    assert (added.get("text") or added["name"]) in tracked


@pytest.mark.parametrize(
    ("dishes", "why"),
    [
        ({"清蒸鲈鱼": 2, "西芹百合": 2}, "3"),
        ({"清蒸鲈鱼": 1}, "一荤一素"),
        ({"清蒸鲈鱼": 1, "西芹百合": 0}, "至少一份"),
        ({"清蒸鲈鱼": 1, "宫保鸡丁": 1}, "宫保鸡丁"),
        ({}, "至少一份"),
    ],
)
async def test_an_order_that_breaks_the_house_s_rules_is_refused(
    start: Any, model: FakeModel, dishes: dict[str, int], why: str
) -> None:
    host: FakeHost = await start()
    session = await host.create_session(agent="takeaway", model="openai:fake", state={"user_id": "Alice"})
    model.calls("place_order", {"dishes": dishes})
    model.says("对不起。")

    await session.run(LATER)

    assert why in model.last_request.tool_results["call_0_0"]
    assert "下单" not in model.last_request.tool_results["call_0_0"]


@pytest.mark.parametrize("arguments", [[], ["--track"]])
def test_the_program_runs_without_network_and_prints_what_was_ordered(
    example: Path, tmp_path: Path, arguments: list[str]
) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "AGENT_SIDECAR_"))}
    done = subprocess.run(
        [sys.executable, "main.py", *arguments],
        cwd=example,
        env={**kept, "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    if arguments:
        assert "tracking: Tool Search: " in done.stdout
        assert "explainRun: memory adds Search" in done.stdout
        assert done.stdout.count(FIRST) == 4  # what she says, as the provider sees it twice, and as explainRun tells it
        return
    orders = [(who, dishes_of(text)) for who, text in re.findall(r"--- 来自 (\w+) 的订单\n(.+)", done.stdout)]
    assert [who for who, _ in orders] == ["Alice"] * 5 + ["Bob"] * 2
    assert all(one != next_one for one, next_one in pairwise(orders))
    assert not any(dishes & SPICY for who, dishes in orders if who == "Alice")
