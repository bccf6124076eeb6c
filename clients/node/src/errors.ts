// What can go wrong for a client: an error answer, a dead sidecar, none to be found, one of another version.

/** The base of this package's errors. */
export class SidecarError extends Error {
  override readonly name: string = "SidecarError";
}

/** The sidecar answered a request with an error. A handler of a reverse request may throw one, to answer with it. */
export class RpcError extends SidecarError {
  override readonly name = "RpcError";
  /** The JSON-RPC error code. */
  readonly code: number;
  /** The error's `data`; empty where there was none. */
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: number, message: string, data: Record<string, unknown> = {}) {
    super(message);
    this.code = code;
    this.data = data;
  }

  /** The error's kind, such as `sessionBusy`, by which errors are told apart; empty where the answer names none. */
  get kind(): string {
    return typeof this.data["kind"] === "string" ? this.data["kind"] : "";
  }

  /** Whether the same request may succeed later. */
  get retryable(): boolean {
    return this.data["retryable"] === true;
  }
}

/** The sidecar is not there any more, or could not be started. */
export class SidecarDied extends SidecarError {
  override readonly name = "SidecarDied";
  /** The exit code; null if a signal ended the process, or if it is not known. */
  readonly exitCode: number | null;
  /** The signal that ended the process, if one did. */
  readonly signal: NodeJS.Signals | null;
  /** The last lines that the process wrote to its stderr. */
  readonly stderr: string;

  constructor(what: string, exitCode: number | null = null, signal: NodeJS.Signals | null = null, stderr = "") {
    super(stderr ? `${what}\n${stderr}` : what);
    this.exitCode = exitCode;
    this.signal = signal;
    this.stderr = stderr;
  }
}

/** There is no program that starts a sidecar. */
export class SidecarNotFound extends SidecarError {
  override readonly name = "SidecarNotFound";
}

/** What was started is no sidecar, or one that this client cannot work with; the message says what to do. */
export class SidecarIncompatible extends SidecarError {
  override readonly name = "SidecarIncompatible";
}

export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;
export const REQUEST_CANCELLED = -32800;
/** The sidecar was shut down before it could answer. */
export const SERVER_CANCELLED = -32802;
