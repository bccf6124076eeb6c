// Calls what the host has given without being stopped by what it throws. Knows none of the listeners.

/** Calls a listener of the host's; what it throws is shown as a warning, and stops nothing. */
export function guarded(call: () => void): void {
  try {
    call();
  } catch (error) {
    warn(error);
  }
}

/** Shows what went wrong in the host's own code, where nobody waits for it. */
export function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}
