// How a sidecar is started and greeted, so that the same can be done again for a new process. Keeps nothing.
import { SidecarProcess, type Spawning } from "./child.js";
import { Connection, type Conversation } from "./connection.js";
import { type Greeting, greet, type Server } from "./handshake.js";

/** Everything that starting takes. */
export interface Launch extends Spawning, Greeting, Conversation {}

/** A sidecar that is ready for requests. */
export interface Launched {
  readonly connection: Connection;
  readonly server: Server;
}

/**
 * Starts a process and greets it. Aborting ends the process.
 *
 * @throws {SidecarDied} It cannot be started, or ended at once.
 * @throws {SidecarIncompatible} It is of a version that this client does not speak.
 * @throws {RpcError} It refused `initialize`.
 */
export async function launch(how: Launch, signal?: AbortSignal): Promise<Launched> {
  signal?.throwIfAborted();
  const connection = new Connection(await SidecarProcess.spawn(how), how);
  const kill = () => connection.process.kill();
  signal?.addEventListener("abort", kill, { once: true });
  try {
    signal?.throwIfAborted();
    return { connection, server: await greet(connection, how) };
  } catch (error) {
    kill();
    await connection.ended;
    throw signal?.aborted ? signal.reason : error;
  } finally {
    signal?.removeEventListener("abort", kill);
  }
}
