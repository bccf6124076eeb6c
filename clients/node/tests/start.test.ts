// Starting: what is found and fetched, how it is spawned, which versions are refused, how it is closed.
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";

import {
  findSidecar,
  PINNED_SIDECAR,
  SidecarClient,
  SidecarDied,
  SidecarIncompatible,
  SidecarNotFound,
} from "agent-sidecar-client";

import { Bench, FAKE } from "./support.js";

const REAL = findSidecar({ env: process.env, cwd: process.cwd() }).program;

test("what is set comes before PATH, PATH before uvx, and uvx before pipx", (t) => {
  const bench = new Bench(t);
  const place = (folder: string, name: string) => {
    mkdirSync(join(bench.root, folder), { recursive: true });
    return bench.write(join(folder, name), "#!/bin/sh\n", 0o755);
  };
  const [installed, uvx, pipx] = [place("a", "agent-sidecar"), place("b", "uvx"), place("c", "pipx")];
  const find = (folders: string, command?: string | string[]) =>
    findSidecar({
      command,
      env: { PATH: [...folders].map((name) => join(bench.root, name)).join(":") },
      cwd: bench.root,
    });
  const spec = `agent-sidecar==${PINNED_SIDECAR}`;

  assert.deepEqual(find("abc", [uvx, "x"]), { program: uvx, arguments: ["x"], by: "setting" });
  assert.deepEqual(find("cba", "pipx"), { program: pipx, arguments: [], by: "setting" });
  assert.deepEqual(find("cba"), { program: installed, arguments: [], by: "path" });
  assert.deepEqual(find("cb"), { program: uvx, arguments: ["--from", spec, "agent-sidecar"], by: "uvx" });
  assert.deepEqual(find("c"), { program: pipx, arguments: ["run", "--spec", spec, "agent-sidecar"], by: "pipx" });
});

test("where there is nothing to start, the message says how to install it", (t) => {
  const { root } = new Bench(t);
  const find = (more: object) => () => findSidecar({ env: { PATH: root }, cwd: root, ...more });

  assert.throws(find({}), (error) => error instanceof SidecarNotFound && /uv tool install/.test(error.message));
  assert.throws(find({ command: "no-such-sidecar" }), /no program: no-such-sidecar/);
  assert.throws(find({ command: "./no/such/sidecar" }), SidecarNotFound);
  assert.throws(find({ command: [] }), SidecarNotFound);
});

test("a workspace's own programs are not taken for the sidecar", (t) => {
  const bench = new Bench(t);
  bench.write("agent-sidecar", "#!/bin/sh\n", 0o755);
  mkdirSync(join(bench.root, "bin"));
  bench.write("bin/pipx", "#!/bin/sh\n", 0o755);
  bench.write("bin/agent-sidecar", "no program");
  const find = (path: string) => findSidecar({ env: { PATH: path }, cwd: bench.root });

  for (const path of ["", ".", `:${join(bench.root, "none")}:`]) assert.throws(() => find(path), SidecarNotFound);
  assert.equal(find(join(bench.root, "bin")).by, "pipx");
  mkdirSync(join(bench.root, "__pypackages__")); // pipx would run what is in there
  assert.throws(() => find(join(bench.root, "bin")), SidecarNotFound);
});

test("a sidecar that uvx fetches is started like one that is installed", async (t) => {
  const bench = new Bench(t);
  mkdirSync(join(bench.root, "bin"));
  bench.write(
    "bin/uvx",
    `#!/bin/sh
case "$*" in
  "--from agent-sidecar==${PINNED_SIDECAR} agent-sidecar serve "*) shift 3; exec "${REAL}" "$@" ;;
esac
exit 9
`,
    0o755,
  );

  const client = await bench.start({ env: { PATH: join(bench.root, "bin") } });

  assert.equal((await (await client.createSession()).run("hello").result()).text, "You said: hello");
  await assert.rejects(bench.start({ bootstrap: false, env: { PATH: join(bench.root, "bin") } }), SidecarNotFound);
});

test("a workspace's Python modules are not run, and no shell reads the arguments", async (t) => {
  const bench = new Bench(t);
  for (const name of ["protocol", "sidecar"]) {
    mkdirSync(join(bench.root, name));
    bench.write(`${name}/__init__.py`, "raise SystemExit('hostile')");
  }
  const store = join(bench.root, "$(touch hostile); s.db");

  const client = await bench.start({ env: { PYTHONPATH: bench.root }, arguments: ["--store", `sqlite:${store}`] });

  assert.equal((await (await client.createSession()).run("hello").result()).text, "You said: hello");
  assert(existsSync(store) && !existsSync(join(bench.root, "hostile")));
});

test("the sidecar tells what it is", async (t) => {
  const { server } = await new Bench(t).start();

  assert.equal(server.name, "agent-sidecar");
  assert.equal(server.protocolVersion, 1);
  assert.deepEqual(server.features["replay"], {});
  assert.equal(typeof server.limits["maxMessageBytes"], "number");
});

for (const [what, version, protocolVersion, message] of [
  ["too new a protocol", "9.0.0", 2, /speaks protocol version 2; this client speaks protocol version 1\. Install/],
  ["too old a release", "0.0.9", 1, /agent-sidecar 0\.0\.9 is too old, .* is needed/],
] as const) {
  test(`${what} is refused, and its process ended`, async (t) => {
    const fake = { FAKE_VERSION: version, FAKE_PROTOCOL: String(protocolVersion) };
    await assert.rejects(
      new Bench(t).start({ command: FAKE, env: fake }),
      (error) => error instanceof SidecarIncompatible && message.test(error.message),
    );
  });
}

test("another language server is refused", async (t) => {
  await assert.rejects(
    new Bench(t).start({ command: FAKE, env: { FAKE_NAME: "pylsp" } }),
    (error) => error instanceof SidecarIncompatible && /no agent-sidecar, but pylsp/.test(error.message),
  );
});

test("a version that the sidecar does not speak is refused by it, and told as such", async (t) => {
  await assert.rejects(
    new Bench(t).start({ options: { protocolVersions: [99] } }),
    (error) => error instanceof SidecarIncompatible && /speaks the protocol versions \[1\]/.test(error.message),
  );
});

test("a program that ends at once is told with its last words", async (t) => {
  await assert.rejects(
    new Bench(t).start({ arguments: ["--no-such-option"] }),
    (error) => error instanceof SidecarDied && error.exitCode === 2 && /no-such-option/.test(error.stderr),
  );
});

test("a program that speaks something else is ended", async () => {
  const says = "console.log('x'.repeat(10_000)); setInterval(() => {}, 1e6)";
  await assert.rejects(SidecarClient.start({ command: [process.execPath, "-e", says] }), SidecarDied);
});

test("a start can be given up", async (t) => {
  const command = [process.execPath, "-e", "setInterval(() => {}, 1e6)"];

  await assert.rejects(new Bench(t).start({ command, signal: AbortSignal.timeout(200) }), { name: "TimeoutError" });
});

test("a method that the host does not know is answered so, and a handler's own errors stay here", async (t) => {
  const handlers = {
    "x-own/fails": () => {
      throw new Error("password: hunter2");
    },
    "x-own/bare": (params: unknown) => ({ params }),
  };
  const client = await new Bench(t).start({ command: FAKE, host: { handlers } });
  const ask = (method: string) => client.request("x-askHost" as "getState", { method } as object);

  assert.deepEqual(await ask("host/unheardOf"), { code: -32601 });
  assert.deepEqual(await ask("host/requestApproval"), { code: -32601 });
  assert.deepEqual(await ask("x-own/fails"), { code: -32603, message: "the host's handler of x-own/fails failed" });
  assert.deepEqual(await ask("x-own/bare"), { params: {} });
});

test("what the host has is declared, and asked for", async (t) => {
  const sent: any[] = [];
  const host = {
    approve: () => {},
    elicit: () => {},
    elicitModes: ["url"] as const,
    editorContext: () => ({ diagnostics: [] }),
    providers: {},
  };
  const trace = (direction: string, message: object) => direction === "sent" && sent.push(message);
  const client = await new Bench(t).start({ command: FAKE, host, trace, workspaceFolders: ["/a b"] });

  const { capabilities, workspaceFolders, initializationOptions } = sent[0].params;
  assert.deepEqual([capabilities, workspaceFolders], [{}, [{ uri: "file:///a%20b", name: "a b" }]]);
  assert.deepEqual(initializationOptions.sidecar, {
    protocolVersions: [1],
    clientId: "agent-sidecar-client",
    features: { hostTools: {}, hostProviders: {}, approvals: {}, elicitation: { url: {} }, editorContext: {} },
  });
  const told = await client.request("x-askHost" as "getState", { method: "host/getEditorContext" } as object);
  assert.deepEqual(told, { diagnostics: [] });
});

test("the last words of a sidecar that dies in the middle of a message are not lost", async (t) => {
  const client = await new Bench(t).start({ command: FAKE });
  const events: number[] = [];
  client.onEvent((event) => events.push(event.seq));

  await assert.rejects(client.request("x-die" as "getState", {}), SidecarDied);

  assert.deepEqual(
    events,
    Array.from({ length: 500 }, (_, index) => index + 1),
  );
});

test("secrets reach the endpoint that names them, and never a trace", async (t) => {
  const keys: (string | undefined)[] = [];
  const chunk = (delta: object, finish_reason: string | null) => {
    const choices = [{ index: 0, delta, finish_reason }];
    return `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", created: 0, model: "m", choices })}\n\n`;
  };
  const endpoint = createServer((request, response) => {
    keys.push(request.headers.authorization);
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(`${chunk({ role: "assistant", content: "hi" }, null)}${chunk({}, "stop")}data: [DONE]\n\n`);
  }).listen(0, "127.0.0.1");
  t.after(() => endpoint.close());
  await once(endpoint, "listening");
  const bench = new Bench(t);
  const { port } = endpoint.address() as AddressInfo;
  bench.configure(
    `[endpoints.mine]\ntype = "openai"\nbase_url = "http://127.0.0.1:${port}/v1"\napi_key_secret = "key"`,
  );
  const seen: string[] = [];

  const client = await bench.start({
    secrets: { key: "sk-hunter2" },
    trace: (_, message) => seen.push(JSON.stringify(message)),
  });
  const session = await client.createSession({ model: "mine:m" });

  assert.equal((await session.run("hello").result()).text, "hi");
  assert.deepEqual(keys, ["Bearer sk-hunter2"]);
  assert(seen.some((message) => message.includes('"secrets":{"key":"…"}')));
  assert(!seen.some((message) => message.includes("hunter2")));
});

test("a close is orderly, ends what runs, and may come twice", async (t) => {
  const client = await new Bench(t).start();
  const run = (await client.createSession()).run("tell me a story");

  await Promise.all([client.close(), client.close()]);

  assert.equal((await client.ended).exitCode, 0);
  assert.equal((await run.result()).status, "interrupted");
});

test("a sidecar that does not end in time is killed", async (t) => {
  const client = await new Bench(t).start({ command: FAKE, env: { FAKE_STAYS: "1" } });

  await client.close(100);

  assert.equal((await client.ended).signal, "SIGKILL");
});
