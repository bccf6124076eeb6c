// The sidecar as a child process: spawned safely, its stderr kept, its end told. Knows no message.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

import { SidecarDied } from "./errors.js";
import { guarded } from "./guarded.js";

const STDERR_LINES_KEPT = 40;
/** Between the first sign of the end and giving up on the rest: a grandchild may hold a pipe open for long. */
const GRACE_MS = 1_000;

/** What is started, and how. */
export interface Spawning {
  readonly program: string;
  readonly arguments: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly onStderr?: ((line: string) => void) | undefined;
}

/** The environment without what would make Python import a workspace's modules in place of the sidecar's own. */
export function cleanEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => name.toUpperCase() !== "PYTHONPATH"));
}

/** A child with pipes. It has a process group of its own: a terminal's Ctrl-C is for the host to interpret. */
export class SidecarProcess {
  /** Resolves when the process is gone, or of no more use, and what it wrote has been read. */
  readonly ended: Promise<SidecarDied>;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #stderr: string[] = [];

  private constructor(child: ChildProcessWithoutNullStreams, onStderr?: (line: string) => void) {
    this.#child = child;
    createInterface({ input: child.stderr, crlfDelay: Infinity }).on("line", (line) => {
      this.#stderr.push(line);
      this.#stderr.splice(0, this.#stderr.length - STDERR_LINES_KEPT);
      guarded(() => onStderr?.(line));
    });
    this.ended = new Promise((resolve) => {
      let grace: NodeJS.Timeout | undefined;
      const finish = () => {
        clearTimeout(grace);
        this.kill();
        for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
        resolve(this.#death());
      };
      const finishSoon = () => (grace ??= setTimeout(finish, GRACE_MS));
      child.once("close", finish);
      child.once("exit", () => {
        child.stdout.resume(); // what is left is read, whoever has stopped the reading
        finishSoon();
      });
      child.stdout.once("close", finishSoon);
      child.stdin.on("error", finishSoon);
    });
  }

  /**
   * Starts a program, without a shell.
   *
   * @throws {SidecarDied} It cannot be started.
   */
  static async spawn({ program, arguments: args, cwd, env, onStderr }: Spawning): Promise<SidecarProcess> {
    const child = spawn(program, args, {
      cwd,
      env: cleanEnvironment(env),
      stdio: "pipe",
      shell: false,
      detached: process.platform !== "win32",
      windowsHide: true,
    });
    try {
      await once(child, "spawn");
    } catch (error) {
      throw new SidecarDied(`cannot start ${program} in ${cwd}: ${(error as Error).message}`);
    }
    return new SidecarProcess(child, onStderr);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get stdin(): NodeJS.WritableStream {
    return this.#child.stdin;
  }

  get stdout(): NodeJS.ReadableStream {
    return this.#child.stdout;
  }

  /** Whether the process can still be written to. */
  get writable(): boolean {
    return this.#child.stdin.writable && this.#child.stdin.errored === null;
  }

  /** Stops or goes on reading what the process writes; it is then held up itself. */
  setReading(reading: boolean): void {
    if (reading || this.#gone) this.#child.stdout.resume();
    else this.#child.stdout.pause();
  }

  /** Tells the process that nothing more will come. */
  endInput(): void {
    this.#child.stdin.end();
  }

  /** Ends the process and its group at once; harmless if it has ended. */
  kill(): void {
    if (this.#gone || this.#child.pid === undefined) return;
    try {
      if (process.platform === "win32") this.#child.kill("SIGKILL");
      else process.kill(-this.#child.pid, "SIGKILL");
    } catch {
      // it has ended in between
    }
  }

  get #gone(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  #death(): SidecarDied {
    const { exitCode, signalCode } = this.#child;
    const how =
      signalCode !== null
        ? `was ended by ${signalCode}`
        : exitCode !== null
          ? `ended with code ${exitCode}`
          : "closed its output";
    return new SidecarDied(`the sidecar ${how}`, exitCode, signalCode, this.#stderr.join("\n"));
  }
}
