// What has to be known to go on in a new process: the sessions that are open, and how far their events were seen.
import type { CreateSessionParams, CreateSessionResult, ResumeSessionParams, ResumeSessionResult } from "./contract.js";
import type { SidecarEvent } from "./events.js";

type Opening = CreateSessionParams & Pick<ResumeSessionParams, "replayFrom">;
type Opened = CreateSessionResult | ResumeSessionResult;
/** What `resumeSession` wants to be given again: the host's tools, its providers, its MCP servers. */
type Supplied = Pick<ResumeSessionParams, "tools" | "contextProviders" | "mcpServers">;

interface Seen {
  /** Of the last durable event that came. */
  seq: number;
  epoch: string;
  /** Whether an event has come since it was opened this way. */
  moved: boolean;
  readonly supplied: Supplied;
}

/** The sessions that one client has opened. */
export class OpenSessions {
  readonly #seen = new Map<string, Seen>();

  /**
   * A session is being created or resumed. It counts as open before the answer is there, because a replay's events come
   * right behind that.
   */
  opening(sessionId: string, params: Opening): { opened: (answer: Opened) => void; refused: () => void } {
    const before = this.#seen.get(sessionId);
    const replay = params.replayFrom;
    const cursor = replay?.type === "seq" ? replay : { seq: 0, epoch: "" };
    const session: Seen = {
      seq: cursor.seq,
      epoch: cursor.epoch,
      moved: false,
      supplied: { ...before?.supplied, ...suppliedIn(params) },
    };
    this.#seen.set(sessionId, session);
    return {
      opened: (answer) => {
        const replays = replay?.type === "start" || replay?.type === "seq";
        if (!replays) session.seq = Math.max(session.seq, answer.lastSeq);
        session.epoch = answer.session.epoch;
      },
      refused: () => {
        if (before === undefined) this.#seen.delete(sessionId);
        else this.#seen.set(sessionId, session.moved ? { ...session, supplied: before.supplied } : before);
      },
    };
  }

  /** A session is open no longer; harmless if it was not. */
  closed(sessionId: string): void {
    this.#seen.delete(sessionId);
  }

  /** An event has come. */
  saw(event: SidecarEvent): void {
    const session = this.#seen.get(event.sessionId);
    if (session === undefined || event.ephemeral) return;
    session.seq = event.seq;
    session.epoch = event.epoch;
    session.moved = true;
  }

  /** The events up to here cannot be had any more. */
  skipTo(answer: ResumeSessionResult): void {
    const session = this.#seen.get(answer.session.sessionId);
    if (session === undefined) return;
    session.seq = answer.lastSeq;
    session.epoch = answer.session.epoch;
  }

  /** For each open session the `resumeSession` that brings what was missed. */
  resumptions(): ResumeSessionParams[] {
    return [...this.#seen].map(([sessionId, { seq, epoch, supplied }]) => ({
      ...supplied,
      sessionId,
      replayFrom: { type: "seq", seq, epoch },
    }));
  }
}

function suppliedIn({ tools, contextProviders, mcpServers }: Opening): Supplied {
  return {
    ...(tools && { tools }),
    ...(contextProviders && { contextProviders: contextProviders.filter((entry) => entry.type === "host") }),
    ...(mcpServers && { mcpServers }),
  };
}
