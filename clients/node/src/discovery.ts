// Finds the program that starts a sidecar: as set, on PATH, or fetched by uvx or pipx. Starts nothing.
import { accessSync, constants, existsSync, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve, sep } from "node:path";

import { SidecarNotFound } from "./errors.js";
import { PINNED_SIDECAR } from "./version.js";

const SCRIPT = "agent-sidecar";
const REQUIREMENT = `${SCRIPT}==${PINNED_SIDECAR}`;
/** Batch files are left out: only a shell can start them. */
const WINDOWS_ENDINGS = [".exe", ".com"];

/** Where to look for a sidecar. */
export interface Discovery {
  /** The program `agent-sidecar`, or another one with its first arguments; nothing of it passes through a shell. */
  readonly command?: string | readonly string[] | undefined;
  /** Whether `uvx` or `pipx` may fetch a sidecar where none is installed. Default: true. */
  readonly bootstrap?: boolean | undefined;
  /** The environment whose PATH is searched. */
  readonly env: NodeJS.ProcessEnv;
  /** Where the sidecar will be started. */
  readonly cwd: string;
}

/** How a sidecar is started; `serve` and its arguments follow. */
export interface SidecarCommand {
  /** An absolute path. */
  readonly program: string;
  readonly arguments: readonly string[];
  /** What it was found by. */
  readonly by: "setting" | "path" | "uvx" | "pipx";
}

/**
 * Finds how to start a sidecar: the `command` that is set, else `agent-sidecar` on PATH, else a pinned release that
 * `uvx` or `pipx run` keep in an environment of its own.
 *
 * @throws {SidecarNotFound} There is none of them; the message says how to install one.
 */
export function findSidecar(discovery: Discovery): SidecarCommand {
  const { command, env } = discovery;
  if (command !== undefined) return asSet(typeof command === "string" ? [command] : command, env);
  const installed = which(SCRIPT, env);
  if (installed !== undefined) return { program: installed, arguments: [], by: "path" };
  const fetched = discovery.bootstrap === false ? undefined : fetching(discovery);
  if (fetched !== undefined) return fetched;
  throw new SidecarNotFound(
    `there is no ${SCRIPT} on PATH` +
      (discovery.bootstrap === false ? "" : ", and neither uvx nor pipx to fetch it") +
      `; install it with "uv tool install ${REQUIREMENT}" or "pipx install ${REQUIREMENT}", or set its path`,
  );
}

function asSet([name, ...rest]: readonly string[], env: NodeJS.ProcessEnv): SidecarCommand {
  if (!name) throw new SidecarNotFound("the command that is set for the sidecar is empty");
  const program = name.includes("/") || name.includes(sep) ? runnable(resolve(name)) : which(name, env);
  if (program === undefined)
    throw new SidecarNotFound(`the command that is set for the sidecar is no program: ${name}`);
  return { program, arguments: rest, by: "setting" };
}

function fetching({ env, cwd }: Discovery): SidecarCommand | undefined {
  const uvx = which("uvx", env);
  if (uvx !== undefined) return { program: uvx, arguments: ["--from", REQUIREMENT, SCRIPT], by: "uvx" };
  // pipx prefers a program in this folder of a workspace, which may be hostile, to the one that it is asked for.
  const pipx = existsSync(join(cwd, "__pypackages__")) ? undefined : which("pipx", env);
  if (pipx === undefined) return undefined;
  return { program: pipx, arguments: ["run", "--spec", REQUIREMENT, SCRIPT], by: "pipx" };
}

/** Only absolute entries of PATH count: others would find programs of the workspace. */
function which(name: string, env: NodeJS.ProcessEnv): string | undefined {
  const key = Object.keys(env).find((known) => known === "PATH" || (onWindows() && known.toUpperCase() === "PATH"));
  const folders = (key === undefined ? "" : (env[key] ?? "")).split(delimiter).filter((folder) => isAbsolute(folder));
  for (const folder of folders) {
    const found = runnable(join(folder, name));
    if (found !== undefined) return found;
  }
  return undefined;
}

function runnable(path: string): string | undefined {
  const named = WINDOWS_ENDINGS.some((ending) => path.toLowerCase().endsWith(ending));
  const candidates = onWindows() && !named ? WINDOWS_ENDINGS.map((ending) => path + ending) : [path];
  return candidates.find(isProgram);
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function onWindows(): boolean {
  return process.platform === "win32";
}
