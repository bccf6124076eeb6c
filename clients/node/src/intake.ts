// Holds back what is not read yet: a bounded buffer of a run's events, and who decides when the pipe is read on.
//
// Reading stops while some run's reader is far behind. It goes on all the same where no loop reads a run, and while
// somebody waits for something that comes through the same pipe (an answer, another run's event): stopping then could
// stop both for good. In that time deltas are joined, so that what is kept is bounded by what the run produces.
import type { SidecarEvent } from "./events.js";

/** Unread events of a run above which reading stops; what one read of the pipe brings may come on top. */
export const EVENTS_KEPT = 1_000;
/** Characters of a joined delta above which a new one is begun. */
const JOINED_TEXT = 16_384;

/** Stops and starts the reading of one client's pipe. */
export class Intake {
  readonly #setReading: (reading: boolean) => void;
  #behind = 0;
  #waiting = 0;
  #reading = true;

  /** @param setReading Called with whether to read, at each change. */
  constructor(setReading: (reading: boolean) => void) {
    this.#setReading = setReading;
  }

  /** Waits for something that comes out of the pipe. */
  async wait<T>(something: Promise<T>): Promise<T> {
    this.#change(0, 1);
    try {
      return await something;
    } finally {
      this.#change(0, -1);
    }
  }

  /** A run's reader has too much before it, or no longer so. */
  falls(behind: boolean): void {
    this.#change(behind ? 1 : -1, 0);
  }

  #change(behind: number, waiting: number): void {
    this.#behind += behind;
    this.#waiting += waiting;
    const reading = this.#behind === 0 || this.#waiting > 0;
    if (reading === this.#reading) return;
    this.#reading = reading;
    this.#setReading(reading);
  }
}

/** A run's events between their arrival and their reader. */
export class EventBuffer {
  readonly #intake: Intake;
  #events: SidecarEvent[] = [];
  #first = 0;
  #loops = 0;
  #ended = false;
  #behind = false;
  readonly #readers: (() => void)[] = [];

  constructor(intake: Intake) {
    this.#intake = intake;
  }

  /** A loop over the events begins, and reading may have to wait for it. Returns what says that it was left. */
  enter(): () => void {
    this.#loops++;
    this.#look();
    return () => {
      this.#loops--;
      this.#look();
    };
  }

  /** Adds an event; above the bound a delta is joined to the one before it. */
  put(event: SidecarEvent): void {
    const last = this.#events.at(-1);
    const joined = this.#size >= EVENTS_KEPT && last !== undefined ? join(last, event) : undefined;
    if (joined === undefined) this.#events.push(event);
    else this.#events[this.#events.length - 1] = joined;
    this.#look();
  }

  /** Nothing more will come. */
  end(): void {
    this.#ended = true;
    this.#look();
  }

  /** The next event; undefined at the end, however often it is asked for. */
  async get(): Promise<SidecarEvent | undefined> {
    while (this.#size === 0 && !this.#ended) {
      await this.#intake.wait(new Promise<void>((resolve) => this.#readers.push(resolve)));
    }
    const event = this.#events[this.#first];
    if (event === undefined) return undefined;
    this.#first++;
    if (this.#first * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#first);
      this.#first = 0;
    }
    this.#look();
    return event;
  }

  get #size(): number {
    return this.#events.length - this.#first;
  }

  #look(): void {
    for (const wake of this.#readers.splice(0)) wake();
    const bound = this.#behind ? EVENTS_KEPT / 2 + 1 : EVENTS_KEPT;
    const behind = this.#loops > 0 && !this.#ended && this.#size >= bound;
    if (behind === this.#behind) return;
    this.#behind = behind;
    this.#intake.falls(behind);
  }
}

/** Two deltas of one message or call as one, with the later one's number; nothing where they do not belong together. */
function join(before: SidecarEvent, event: SidecarEvent): SidecarEvent | undefined {
  if (before.type === "message.delta" && event.type === "message.delta") {
    const fits = isSameMessage(before, event) && before.data.contentIndex === event.data.contentIndex;
    return fits ? { ...event, data: { ...event.data, text: before.data.text + event.data.text } } : undefined;
  }
  if (before.type === "reasoning.delta" && event.type === "reasoning.delta" && isSameMessage(before, event)) {
    return { ...event, data: { ...event.data, text: before.data.text + event.data.text } };
  }
  if (before.type === "tool.delta" && event.type === "tool.delta") {
    const fits = before.data.callId === event.data.callId && hasRoom(before);
    return fits ? { ...event, data: { ...event.data, text: `${before.data.text}\n${event.data.text}` } } : undefined;
  }
  return undefined;
}

type Delta = Extract<SidecarEvent, { type: "message.delta" | "reasoning.delta" }>;

function isSameMessage(before: Delta, event: Delta): boolean {
  return before.runId === event.runId && before.data.messageId === event.data.messageId && hasRoom(before);
}

function hasRoom(before: { readonly data: { readonly text: string } }): boolean {
  return before.data.text.length < JOINED_TEXT;
}
