// What every test here is given: a folder of its own, a scripted model, sidecars that are closed at the end.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";

import { type Run, SidecarClient, type SidecarEvent, type StartOptions } from "agent-sidecar-client";

/** The command of a process that greets like a sidecar, and then does what a real one never does. */
export const FAKE = [process.execPath, fileURLToPath(new URL("fake-sidecar.js", import.meta.url))];

/** The input whose answer begins and then never ends. */
export const STALLS = "tell me a story";

const MODEL = `
[[reply]]
when_tool = "delete_note"
text = "{result}"

[[reply]]
when_tool = "book"
text = "{result}"

[[reply]]
when = "${STALLS}"
text = ["Once upon", " a time"]
stall = true

[[reply]]
when = "fail"
error = "modelUnavailable"

[[reply]]
when = "delete (?P<note>.+)"
calls = [{ name = "delete_note", arguments = { note = "{note}" } }]

[[reply]]
when = "book"
calls = [{ name = "book" }]

[[reply]]
when = "what were you told"
text = "{instructions}"

[[reply]]
when = "."
text = ["You said: ", "{input}"]
`;

const BOOKING = `
from providers.api.run_context import current_run
from providers.api.tool import tool

FORM = {"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]}


@tool
async def book() -> str:
    """Book seats."""
    answer = await current_run().elicit("How many seats?", schema=FORM)
    return f"Booked {answer.content['seats']}." if answer.action == "accept" else f"Nothing: {answer.action}."
`;

/** A folder with a model, a configuration and a store; nothing of the user's is read or written. */
export class Bench {
  readonly root: string;
  readonly #test: TestContext;

  constructor(test: TestContext) {
    this.#test = test;
    this.root = mkdtempSync(join(tmpdir(), "agent-sidecar-client-"));
    test.after(() => rmSync(this.root, { recursive: true, force: true }));
    this.write("model.toml", MODEL);
    this.write("booking.py", BOOKING);
    this.configure("");
  }

  /** Writes a file; returns its path. */
  write(name: string, text: string, mode = 0o644): string {
    const path = join(this.root, name);
    writeFileSync(path, text, { mode });
    return path;
  }

  /** Adds to the configuration that each sidecar is started with. */
  configure(more: string): void {
    const base = [
      `default_model = "scripted:${join(this.root, "model.toml")}"`,
      'plugins = ["."]',
      'tools = ["booking:book"]',
      '[agents.clerk]\ntools = [{ type = "registered", name = "book" }]',
    ];
    this.write("sidecar.toml", [...base, more].join("\n"));
  }

  async start(options: StartOptions = {}): Promise<SidecarClient> {
    const { env, arguments: more = [], ...rest } = options;
    const own = Object.fromEntries(
      ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"].map((name) => [name, this.root]),
    );
    const client = await SidecarClient.start({
      arguments: ["--config", join(this.root, "sidecar.toml"), "--store", `sqlite:${join(this.root, "s.db")}`, ...more],
      cwd: this.root,
      env: { ...own, OPENAI_API_KEY: "", OPENAI_BASE_URL: "", ...env },
      ...rest,
    });
    this.#test.after(() => client.close());
    return client;
  }
}

/** Every event of a run, up to its end. */
export async function eventsOf(run: Run): Promise<SidecarEvent[]> {
  const events: SidecarEvent[] = [];
  for await (const event of run) events.push(event);
  return events;
}

/** Reads a run up to the first event of a type. */
export async function until(run: Run, type: SidecarEvent["type"]): Promise<void> {
  for await (const event of run) if (event.type === type) return;
  throw new Error(`the run ended without ${type}`);
}

/** Events as they are stored: without what is only shown, and without what belongs to one connection. */
export function durable(events: readonly SidecarEvent[]): unknown[] {
  return events.filter((event) => !event.ephemeral).map(({ prevSeq: _, ...event }) => event);
}
