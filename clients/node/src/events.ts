// The events of a session as a union that `event.type` tells apart. Types only.
import type { Events, RunEvent } from "./contract.js";

/** An event of one type. */
export type EventOf<T extends keyof Events> = Omit<RunEvent, "type" | "data"> & { type: T; data: Events[T] };

/**
 * An event. A later sidecar may send types that are not listed here: pass over what you do not know. Events with
 * `ephemeral` are for display; the matching `…completed` event has the whole.
 */
export type SidecarEvent = { [T in keyof Events]: EventOf<T> }[keyof Events];

/** Is called with events in order. What it throws is shown as a warning. */
export type EventListener = (event: SidecarEvent) => void;
