"""`mem0` around runs: the real library with its store on disk, its two models played by endpoints on this machine."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from providers import mem0, mem0_process
from providers.api.provider import Surroundings
from providers.api.session import Session
from providers.child_process import start_child
from providers.mem0 import Mem0Provider
from providers.mem0_config import Mem0Config
from providers.mem0_process import Mem0Process
from tests.bench.agent_run import AgentRun, bound
from tests.bench.fake_client import FakeClient, says
from tests.bench.fake_embeddings import FakeEmbeddings
from tests.bench.fake_model import FakeModel
from tests.bench.processes import gone

pytestmark = [
    pytest.mark.skipif(os.name == "nt", reason="POSIX files"),
    pytest.mark.skipif(find_spec("mem0") is None, reason="no mem0 here; .ci/run installs it"),
]

KEY = "sk-of-the-test-0123456789"
BOTH = {"userId": {"fromState": "user"}}


@pytest.fixture
async def embeddings() -> AsyncIterator[FakeEmbeddings]:
    async with FakeEmbeddings() as endpoint:
        yield endpoint


class Bench:
    """A folder, the two endpoints, and runs of sessions that use them."""

    def __init__(self, folder: Path, model: FakeModel, embeddings: FakeEmbeddings) -> None:
        self.folder = folder
        self.model = model
        self.embeddings = embeddings

    def provider(self, **config: Any) -> Mem0Provider:
        whole = {
            "path": "memories",
            "llm": {"model": "fake", "baseUrl": self.model.url, "apiKeyEnv": "MEM0_TEST_KEY"},
            "embedder": {"model": "fake", "baseUrl": self.embeddings.url, "dimensions": 64},
            "storageScope": BOTH,
            "searchScope": BOTH,
            **config,
        }
        return Mem0Provider("mem0", Mem0Config.model_validate(whole), Surroundings(cwd=str(self.folder)))

    def learns(self, *memories: str) -> None:
        """What the model makes of the next run."""
        self.answers(json.dumps({"memory": [{"id": str(n), "text": text} for n, text in enumerate(memories)]}))

    def answers(self, text: str) -> None:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        self.model.completes(
            {"id": "1", "object": "chat.completion", "created": 1, "model": "fake", "choices": [choice]}
        )

    async def run(self, provider: Mem0Provider, text: str, user: str = "ann", *, timeout_ms: int = 60_000) -> AgentRun:
        limited = bound(provider, timeout_ms=timeout_ms)
        run = AgentRun(FakeClient(says("I see")), [limited], session=Session("s", state={"user": user}))
        await run.say(text)
        return run


@pytest.fixture
def bench(tmp_path: Path, model: FakeModel, embeddings: FakeEmbeddings, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setenv("MEM0_TEST_KEY", KEY)
    monkeypatch.setattr(mem0, "SEARCH_S", 60.0)
    return Bench(tmp_path, model, embeddings)


@pytest.fixture
async def running(bench: Bench) -> AsyncIterator[None]:
    """Keeps Mem0's process while sessions come and go: it takes over a second to start."""
    async with bench.provider() as provider:
        bench.learns()
        await bench.run(provider, "hello", "somebody else")
        yield


def shown(run: AgentRun) -> list[str]:
    """What the model saw besides the input."""
    return [message.text for message in run.client.requests[0].messages][:-1]


def warned(run: AgentRun) -> list[str]:
    return [message for _, message, _ in run.sink.warnings]


async def test_what_a_user_said_comes_back_and_outlives_the_process(bench: Bench) -> None:
    async with bench.provider() as provider:
        bench.learns("Ann likes sushi", "Ann lives in Ghent")
        run = await bench.run(provider, "I am Ann, I like sushi and live in Ghent")
        assert (shown(run), warned(run)) == ([], [])
    async with bench.provider(maxResults=1) as provider:
        bench.learns()
        run = await bench.run(provider, "Which sushi does Ann like?")

    assert shown(run) == ["What is remembered of earlier conversations, and may matter for this one:\nAnn likes sushi"]
    assert [path.name for path in bench.folder.iterdir()] == ["memories"]


@pytest.mark.usefixtures("running")
async def test_what_a_user_said_comes_back_to_nobody_else(bench: Bench) -> None:
    """Mem0 itself cuts blanks off a user's id, and takes an asterisk for everybody."""
    found: dict[str, int] = {}
    for user in ("ann", "bob", "*", " ann", "ann ", "an%6E", "ANN", "Ann Lee", "ann"):
        async with bench.provider() as provider:
            bench.learns(f"{user} likes sushi")
            run = await bench.run(provider, "Which sushi do I like?", user)
            found[user] = len(shown(run))
            assert warned(run) == []

    assert found == {"ann": 1, **dict.fromkeys(("bob", "*", " ann", "ann ", "an%6E", "ANN", "Ann Lee"), 0)}


@pytest.mark.usefixtures("running")
async def test_an_agent_s_memories_of_two_users_stay_apart_where_both_ids_are_searched(bench: Bench) -> None:
    scope = {"userId": {"fromState": "user"}, "agentId": "agent"}
    for user in ("ann", "bob"):
        async with bench.provider(storageScope=scope, searchScope=scope) as provider:
            bench.learns(f"{user} likes sushi")
            await bench.run(provider, "I like sushi", user)
    async with bench.provider(storageScope=scope, searchScope=scope, contextPrompt="") as provider:
        bench.learns()
        run = await bench.run(provider, "Who likes sushi?", "bob")

    assert shown(run) == ["bob likes sushi"]


async def test_without_a_search_scope_nothing_is_searched_and_it_is_said_once(bench: Bench) -> None:
    async with bench.provider(searchScope=None) as provider:
        bench.learns("Ann likes sushi")
        first = await bench.run(provider, "I like sushi, and my password is hunter2hunter2")
        told = bench.model.last_request.text
        bench.learns()
        second = await bench.run(provider, " \u200b")

    assert [shown(first), shown(second)] == [[], []]
    assert warned(first) == [f"provider 'mem0': {provider.detail}"]
    assert warned(second) == []
    assert "user: I like sushi, and my password is <redacted>\nassistant: I see\n" in told
    assert "## New Messages\nassistant: I see\n" in bench.model.last_request.text


async def test_a_model_that_fails_costs_no_reply_and_is_told_by_its_fault(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str] = []
    faults = (
        lambda: bench.model.fails(401, error={"message": f"bad key {KEY}"}),
        lambda: bench.model.fails(500, times=2, error={"message": "Ann likes sushi"}),
        lambda: bench.model.drops(2),
        lambda: bench.answers("Ann likes sushi, I think"),
    )
    async with bench.provider() as provider:
        for fault in faults:
            fault()
            run = await bench.run(provider, "I like sushi")
            assert run.sink.streamed == "I see"
            assert KEY not in f"{run.sink.events} {run.sink.commits}"
            told += warned(run)

    begins = "provider 'mem0' failed in afterRun: Mem0 cannot remember: "
    assert [one.removeprefix(begins) for one in told] == [
        "LLMError from AuthenticationError",
        "LLMError from InternalServerError",
        "LLMError from APIConnectionError",
        "the model's answer holds no memories that could be read",
    ]
    assert KEY not in caplog.text
    assert "sushi" not in caplog.text


async def test_an_embedder_that_fails_costs_no_run_and_is_told(bench: Bench) -> None:
    embed = bench.embeddings.embedded

    def embed_the_run_but_no_memory(request: Any) -> Any:
        bench.embeddings.fails(400, times=3)
        return embed(request)

    async with bench.provider() as provider, bench.provider(searchScope=None) as learning:
        bench.embeddings.fails(500, times=2)
        bench.learns()
        searching = await bench.run(provider, "What do I like?")
        bench.embeddings.otherwise(embed_the_run_but_no_memory)
        bench.learns("Ann likes sushi")
        run = await bench.run(learning, "I like sushi")

    assert warned(searching) == ["provider 'mem0' failed in beforeRun: Mem0 cannot search: InternalServerError"]
    assert warned(run)[-1].endswith("Mem0 cannot remember: a memory could not be embedded")


async def test_a_search_waits_for_no_model_that_thinks_and_not_long_for_an_embedder_that_hangs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench.provider() as provider, bench.provider() as other:
        bench.learns("Ann likes sushi")
        await bench.run(provider, "I like sushi")
        bench.model.hangs()
        thinking = asyncio.ensure_future(bench.run(provider, "I like tea"))
        await bench.model.received(2)
        for _ in range(2):
            bench.learns()
        run = await bench.run(other, "What sushi do I like?")
        assert not thinking.done()
        thinking.cancel()
        await asyncio.gather(thinking, return_exceptions=True)
        monkeypatch.setattr(mem0, "SEARCH_S", 0.2)
        bench.embeddings.hangs()
        late = await bench.run(other, "What sushi do I like?")

    assert "Ann likes sushi" in shown(run)[0]
    assert warned(late)[0].endswith("Mem0 cannot search: it gave no answer within 0.2 seconds")


async def test_sessions_of_a_folder_share_a_process_that_ends_with_the_last_of_them(bench: Bench) -> None:
    first, second, other = bench.provider(), bench.provider(), bench.provider(llm={"model": "another"})
    async with first:
        async with second, other:
            for provider in (first, second):
                bench.learns()
                await bench.run(provider, "hello")
            (pid,) = {pid_of(first), pid_of(second)}
            run = await bench.run(other, "hello")
            assert "uses {} with other settings".format(bench.folder / "memories") in warned(run)[0]
        os.kill(pid, 0)
        told = told_at_its_start(pid)
    await gone(pid)

    assert b"MEM0_TELEMETRY=False" in told
    assert b"HOME=" not in told
    assert KEY.encode() not in told
    assert bench.model.last_request.headers["authorization"] == f"Bearer {KEY}"
    assert bench.embeddings.last_request.headers["authorization"] == "Bearer none"


async def test_a_start_that_takes_longer_than_a_hook_may_is_there_for_the_next_run(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Path] = []

    async def start(script: Path, **options: Any) -> Any:
        started.append(script)
        return await start_child(script, **options)

    monkeypatch.setattr(mem0_process, "start_child", start)
    async with bench.provider() as provider:
        early = await bench.run(provider, "I like sushi", timeout_ms=20)
        bench.learns()
        run = await bench.run(provider, "I like sushi")

    assert [one.partition(": ")[2] for one in warned(early)] == ["it took longer than 20 ms"] * 2
    assert warned(run) == []
    assert len(started) == 1


async def test_a_process_that_was_killed_is_started_again(bench: Bench) -> None:
    async with bench.provider() as provider:
        bench.learns("Ann likes sushi")
        await bench.run(provider, "I like sushi")
        pid = pid_of(provider)
        bench.embeddings.otherwise(lambda _: os.kill(pid, signal.SIGKILL) or [])
        run = await bench.run(provider, "What sushi do I like?")
        bench.embeddings.otherwise(bench.embeddings.embedded)
        bench.learns()
        later = await bench.run(provider, "What sushi do I like?")

    assert "Mem0 cannot search: its process ended" in warned(run)[0]
    assert "Ann likes sushi" in shown(later)[0]


async def test_a_folder_that_another_process_uses_is_told(bench: Bench) -> None:
    other = Mem0Process(bench.folder / "memories")
    provider = bench.provider()
    await other.ready(provider._mem0_config(provider._folder()))
    other.use()
    async with provider:
        run = await bench.run(provider, "hello")
    await other.release()

    assert warned(run)[0].endswith("Mem0 cannot search: it cannot be started: another process uses the folder")


async def test_the_folder_is_the_user_s_alone_and_no_link_leads_out(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "memories").symlink_to(tmp_path / "elsewhere")
    async with bench.provider() as provider:
        run = await bench.run(provider, "hello")

    assert "is a link" in warned(run)[0]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def told_at_its_start(pid: int) -> bytes:
    """The environment and the arguments of a process."""
    return b"".join(Path(f"/proc/{pid}/{what}").read_bytes() for what in ("environ", "cmdline"))


def pid_of(provider: Mem0Provider) -> int:
    process = provider._process
    assert process is not None
    assert process.pid is not None
    return process.pid
