// Greets a sidecar that was just started, and refuses one that this client cannot work with. Keeps nothing.
import { basename } from "node:path";
import { pathToFileURL } from "node:url";

import type { Connection } from "./connection.js";
import type { InitializeResult, Json, SidecarOptions } from "./contract.js";
import { RpcError, SidecarIncompatible } from "./errors.js";
import { CLIENT_ID, OLDEST_SIDECAR, PINNED_SIDECAR, PROTOCOL_VERSIONS } from "./version.js";

/** What the host tells of itself. */
export interface Greeting {
  /** Keys of `initializationOptions.sidecar`; they win over this client's own. */
  readonly options: SidecarOptions;
  readonly features: Readonly<Record<string, Json>>;
  /** Paths of the folders that the user works in. */
  readonly workspaceFolders: readonly string[];
}

/** What the sidecar tells of itself. */
export interface Server {
  readonly name: string;
  readonly version: string;
  readonly protocolVersion: number;
  readonly instanceId: string;
  /** What this build can do: an object a feature. */
  readonly features: Readonly<Record<string, Json>>;
  readonly limits: Readonly<Record<string, number>>;
  readonly schemaHash: string;
  readonly commands: readonly string[];
}

/**
 * Initializes a sidecar.
 *
 * @throws {SidecarIncompatible} It is no sidecar, or of a version that this client does not speak.
 * @throws {RpcError} It refused.
 * @throws {SidecarDied} It ended.
 */
export async function greet(connection: Connection, greeting: Greeting): Promise<Server> {
  const { options, features, workspaceFolders } = greeting;
  const folders = workspaceFolders.map((path) => ({ uri: pathToFileURL(path).href, name: basename(path) }));
  let answer: InitializeResult;
  try {
    answer = await connection.request("initialize", {
      processId: process.pid,
      clientInfo: { name: CLIENT_ID },
      rootUri: folders[0]?.uri ?? null,
      ...(folders.length > 0 && { workspaceFolders: folders }),
      capabilities: {},
      initializationOptions: {
        sidecar: { protocolVersions: PROTOCOL_VERSIONS, clientId: CLIENT_ID, features, ...options },
      },
    });
  } catch (error) {
    throw error instanceof RpcError ? refusal(error) : error;
  }
  const server = checked(answer);
  void connection.notify("initialized");
  return server;
}

function checked(answer: InitializeResult | null): Server {
  const info = answer?.serverInfo ?? {};
  const sidecar: Json = answer?.capabilities?.["experimental"]?.sidecar;
  const server: Server = { name: info["name"], version: info["version"], ...sidecar };
  if (server.name !== "agent-sidecar" || sidecar === undefined) {
    throw new SidecarIncompatible(`what was started is no agent-sidecar, but ${server.name ?? "a nameless server"}`);
  }
  if (!PROTOCOL_VERSIONS.includes(server.protocolVersion)) {
    throw incompatible(`agent-sidecar ${server.version} speaks protocol version ${server.protocolVersion}`);
  }
  if (isOlder(server.version, OLDEST_SIDECAR)) {
    throw incompatible(`agent-sidecar ${server.version} is too old, ${OLDEST_SIDECAR} is needed`);
  }
  return server;
}

function refusal(error: RpcError): Error {
  return error.kind === "protocolVersionUnsupported"
    ? incompatible(`the sidecar speaks the protocol versions ${JSON.stringify(error.data["supported"])}`)
    : error;
}

function incompatible(what: string): SidecarIncompatible {
  const ours = `this client speaks protocol version ${PROTOCOL_VERSIONS.join(", ")}`;
  return new SidecarIncompatible(`${what}; ${ours}. Install agent-sidecar ${PINNED_SIDECAR}, or set another command`);
}

/** Compares releases number by number; what follows the numbers does not count. */
function isOlder(version: string, than: string): boolean {
  const [one, other] = [version, than].map((text) => text.split(".").map((part) => Number.parseInt(part, 10) || 0));
  for (let place = 0; place < 3; place++) {
    const difference = (one?.[place] ?? 0) - (other?.[place] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}
