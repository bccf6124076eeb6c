// What is asked for after a crash: the events behind the last one that was seen.
import assert from "node:assert/strict";
import { test } from "node:test";

import type { SidecarEvent } from "agent-sidecar-client";

import { OpenSessions } from "../dist/open-sessions.js";

const event = (seq: number) => ({ sessionId: "s", seq, epoch: "e" }) as SidecarEvent;

function opened() {
  const sessions = new OpenSessions();
  const answer = { session: { sessionId: "s", epoch: "e" }, lastSeq: 3 };
  sessions.opening("s", { model: "scripted:echo" }).opened(answer as never);
  return { sessions, cursor: () => sessions.resumptions()[0]?.replayFrom };
}

test("a refused resumption of an open session forgets no event that came meanwhile", () => {
  const { sessions, cursor } = opened();

  const opening = sessions.opening("s", { replayFrom: { type: "start" } });
  sessions.saw(event(4));
  opening.refused();

  assert.deepEqual(cursor(), { type: "seq", seq: 4, epoch: "e" });
});

test("a refused resumption without an event in between changes nothing", () => {
  const { sessions, cursor } = opened();

  sessions.opening("s", { replayFrom: { type: "seq", seq: 90, epoch: "x" } }).refused();

  assert.deepEqual(cursor(), { type: "seq", seq: 3, epoch: "e" });
});
