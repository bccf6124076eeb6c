// What the real sidecar asks of its host: tools, providers, consent, answers. And what it must not ask.
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  accept,
  allowOnce,
  type ApprovalAnswer,
  decline,
  type Host,
  hostTool,
  reject,
  type RequestApprovalParams,
  type ToolCall,
  ToolFailure,
} from "agent-sidecar-client";

import { Bench, eventsOf, until } from "./support.js";

const DELETE_NOTE = {
  name: "delete_note",
  description: "Delete a note.",
  inputSchema: { type: "object", properties: { note: { type: "string" } }, required: ["note"] },
} as const;

const deleteNote = hostTool<{ note: string }>(DELETE_NOTE, ({ note }) => `${note} is gone.`);
const gated = hostTool<{ note: string }>(
  { ...DELETE_NOTE, approvalMode: "always_require" },
  ({ note }) => `${note} is gone.`,
);

test("a tool of a session is called with the model's arguments and the run's own", async (t) => {
  const client = await new Bench(t).start();
  const calls: ToolCall[] = [];
  const tool = hostTool<{ note: string }>(DELETE_NOTE, ({ note }, call) => {
    calls.push(call);
    call.progress("half way");
    return `${note} is gone.`;
  });
  const session = await client.createSession({ tools: [tool] });

  const run = session.run("delete a.txt", { functionInvocationKwargs: { tenant: "t1" } });
  const events = await eventsOf(run);

  assert.equal((await run.result()).text, "a.txt is gone.");
  assert.deepEqual(calls[0]?.kwargs, { tenant: "t1" });
  assert.equal(calls[0]?.runId, run.runId);
  const progress = events.flatMap((event) => (event.type === "tool.delta" ? [event.data.text] : []));
  assert.deepEqual(progress, ["half way"]);
});

test("a tool of the host's serves every session, and a session's own comes first", async (t) => {
  const client = await new Bench(t).start({ host: { tools: [deleteNote] } });
  const own = hostTool(DELETE_NOTE, () => "kept.");

  const [general, special] = await Promise.all([
    client.createSession({ tools: [DELETE_NOTE] }),
    client.createSession({ tools: [own] }),
  ]);

  assert.equal((await general.run("delete a.txt").result()).text, "a.txt is gone.");
  assert.equal((await special.run("delete a.txt").result()).text, "kept.");
});

for (const [what, thrown, told] of [
  ["the words of a ToolFailure", new ToolFailure("the note is locked"), "the note is locked"],
  ["of any other error only the name", new TypeError("password: hunter2"), "the tool failed: TypeError"],
] as const) {
  test(`the model learns ${what}`, async (t) => {
    const client = await new Bench(t).start();
    const tool = hostTool(DELETE_NOTE, () => {
      throw thrown;
    });
    const run = (await client.createSession({ tools: [tool] })).run("delete a.txt");

    const events = await eventsOf(run);

    assert(events.some((event) => event.type === "tool.completed" && event.data.status === "failed"));
    assert.equal((await run.result()).text, told);
  });
}

const circular: Record<string, unknown> = {};
circular["hunter2"] = circular;

for (const [what, structuredContent] of [
  ["a BigInt", { hunter2: 2n }],
  ["a circle", circular],
] as const) {
  test(`of a result with ${what} the model learns only that it is no JSON`, async (t) => {
    const client = await new Bench(t).start();
    const tool = hostTool(DELETE_NOTE, () => ({ content: "done", structuredContent }));
    const session = await client.createSession({ tools: [tool] });

    const { text } = await session.run("delete a.txt").result();

    assert.equal(text, "the tool failed: its result is no JSON");
    assert(!JSON.stringify(await session.getEvents({ afterSeq: 0 })).includes("hunter2"));
  });
}

for (const nothing of [null, undefined]) {
  test(`a tool that returns ${nothing} has an empty result`, async (t) => {
    const client = await new Bench(t).start();
    const session = await client.createSession({ tools: [hostTool(DELETE_NOTE, () => nothing)] });

    const events = await eventsOf(session.run("delete a.txt"));

    const [completed] = events.flatMap((event) => (event.type === "tool.completed" ? [event.data] : []));
    assert.deepEqual([completed?.status, completed?.content], ["completed", []]);
  });
}

test("a cancelled run aborts the signal of its call", async (t) => {
  const client = await new Bench(t).start();
  let aborted: Promise<unknown> | undefined;
  const tool = hostTool(DELETE_NOTE, (_, { signal }) => {
    aborted = new Promise((resolve) => signal.addEventListener("abort", resolve));
    return aborted.then(() => "too late");
  });
  const run = (await client.createSession({ tools: [tool] })).run("delete a.txt");
  await until(run, "request.opened");
  while (aborted === undefined) await new Promise(setImmediate);

  run.cancel();

  assert.equal((await run.result()).status, "cancelled");
  await aborted;
});

test("a provider adds context before a run and remembers after it", async (t) => {
  const host: Host = {
    providers: {
      desk: {
        beforeRun: ({ state }) => ({ instructions: `This is visit ${(state.visits ?? 0) + 1}.` }),
        afterRun: ({ state, response }) => ({ state: { visits: (state.visits ?? 0) + 1, last: response?.text } }),
      },
    },
  };
  const client = await new Bench(t).start({ host });
  const session = await client.createSession({ contextProviders: [{ type: "host", sourceId: "desk" }] });

  const texts = [
    (await session.run("what were you told").result()).text,
    (await session.run("what were you told").result()).text,
  ];

  assert.deepEqual(texts, ["This is visit 1.", "This is visit 2."]);
  assert.deepEqual((await session.getState()).state, { desk: { visits: 2, last: "This is visit 2." } });
});

for (const [answer, text] of [
  [allowOnce(), "a.txt is gone."],
  ["allowOnce", "a.txt is gone."],
  [reject("keep that one"), "Error: Tool call invocation was rejected by user. They said: keep that one"],
  [undefined, "Error: Tool call invocation was rejected by user."],
] as [ApprovalAnswer, string][]) {
  test(`consent: ${JSON.stringify(answer) ?? "nobody decided"}`, async (t) => {
    const asked: RequestApprovalParams[] = [];
    const approve = (request: RequestApprovalParams) => {
      asked.push(request);
      return answer;
    };
    const client = await new Bench(t).start({ host: { approve } });
    const session = await client.createSession({ tools: [gated] });

    assert.equal((await session.run("delete a.txt").result()).text, text);

    assert.deepEqual(
      asked.map(({ toolCall }) => [toolCall.name, toolCall.arguments]),
      [["delete_note", { note: "a.txt" }]],
    );
  });
}

test("a handler of consent that fails denies, and its words go nowhere", async (t) => {
  const approve = () => {
    throw new Error("password: hunter2");
  };
  const client = await new Bench(t).start({ host: { approve } });
  const session = await client.createSession({ tools: [gated] });

  const result = await session.run("delete a.txt").result();

  assert.match(result.text, /rejected/);
  assert(!JSON.stringify(await session.getEvents({ afterSeq: 0 })).includes("hunter2"));
});

for (const [what, answer, text] of [
  ["accepted", accept({ seats: 2 }), "Booked 2."],
  ["declined", decline(), "Nothing: decline."],
  ["closed", undefined, "Nothing: cancel."],
] as const) {
  test(`a question is ${what}`, async (t) => {
    const client = await new Bench(t).start({ host: { elicit: () => answer, elicitModes: ["form"] } });
    const session = await client.createSession({ agent: "clerk" });

    assert.equal((await session.run("book").result()).text, text);
  });
}

test("what the user has before them is told where an agent wants to know it", async (t) => {
  const asked: string[][] = [];
  const editorContext: Host["editorContext"] = ({ kinds }) => {
    asked.push(kinds);
    return { selection: { uri: "file:///a.py", text: "x = 41 + 1" } };
  };
  const client = await new Bench(t).start({ host: { editorContext } });
  const session = await client.createSession({ contextProviders: [{ type: "editor_context" }] });

  const { runId } = await session.run("hello").result();

  assert.equal(asked.length, 1);
  assert.match(JSON.stringify(await session.explainRun(runId)), /x = 41 \+ 1/);
});

test("what the host has not is not declared, and the sidecar does without", async (t) => {
  const sent: any[] = [];
  const client = await new Bench(t).start({
    trace: (direction, message) => direction === "sent" && sent.push(message),
  });
  const clerk = await client.createSession({ agent: "clerk" });

  assert.deepEqual(sent[0].params.initializationOptions.sidecar.features, { hostTools: {} });
  assert.deepEqual(sent[0].params.capabilities, {});
  assert.equal((await clerk.run("book").result()).text, "Nothing: decline.");
});

test("a run that nobody could consent to ends with the question, which can be answered late", async (t) => {
  const client = await new Bench(t).start();
  const session = await client.createSession({ tools: [gated] });
  const goesOn = new Promise<string>((resolve) =>
    client.onEvent((event) => event.type === "tool.completed" && resolve(event.data.status)),
  );

  const { stopReason, pendingRequests: [pending] = [] } = await session.run("delete a.txt").result();
  assert.equal(stopReason, "inputRequired");
  assert(pending);

  const { status, runId } = await session.answer(pending, allowOnce());

  assert.equal(status, "resolved");
  assert.equal(typeof runId, "string");
  assert.equal(await goesOn, "completed");
  assert.equal((await session.answer(pending, reject())).status, "alreadyResolved");
});
