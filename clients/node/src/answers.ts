// Answers what the sidecar asks of its host: finds the tool, the provider or the person. Speaks no JSON-RPC.
import type { HandlerContext, RequestHandler } from "./connection.js";
import { type ApprovalAnswer, outcomeOf } from "./consent.js";
import type {
  AfterRunParams,
  BeforeRunParams,
  CallToolParams,
  CallToolResult,
  EditorContextParams,
  ElicitParams,
  HostTool,
  Json,
  PendingRequest,
  RequestApprovalParams,
} from "./contract.js";
import { INVALID_PARAMS, RpcError } from "./errors.js";
import type { Host } from "./host.js";
import { type Tool, toolResult } from "./tools.js";
import type { SessionTool } from "./types.js";

type ToolsByName = ReadonlyMap<string, Tool>;

/** One host's answers, for all of its sessions. */
export class HostAnswers {
  /** What answers each method that can be answered. */
  readonly handlers: ReadonlyMap<string, RequestHandler>;
  /** What `initialize` tells the sidecar of it. */
  readonly features: Readonly<Record<string, Json>>;
  readonly #host: Host;
  readonly #tools: ToolsByName;
  readonly #ofSession = new Map<string, ToolsByName>();

  constructor(host: Host) {
    this.#host = host;
    this.#tools = byName(host.tools ?? []);
    const { providers, approve, elicit, elicitModes = ["form", "url"], editorContext, handlers = {} } = host;
    const answered = new Map<string, RequestHandler>([["host/callTool", this.#callTool.bind(this)]]);
    const features: Record<string, Json> = { hostTools: {} }; // a session's own may come at any time
    if (providers !== undefined) {
      answered.set("host/beforeRun", (params: BeforeRunParams, context) => this.#hook("beforeRun", params, context));
      answered.set("host/afterRun", (params: AfterRunParams, context) => this.#hook("afterRun", params, context));
      features["hostProviders"] = {};
    }
    if (approve !== undefined) {
      answered.set("host/requestApproval", async (params: RequestApprovalParams, context) =>
        outcomeOf(params.options, await approve(params, context)),
      );
      features["approvals"] = {};
    }
    if (elicit !== undefined) {
      answered.set(
        "host/elicit",
        async (params: ElicitParams, context) => (await elicit(params, context)) ?? { action: "cancel" },
      );
      features["elicitation"] = Object.fromEntries(elicitModes.map((mode) => [mode, {}]));
    }
    if (editorContext !== undefined) {
      answered.set(
        "host/getEditorContext",
        async (params: EditorContextParams, context) => (await editorContext(params, context)) ?? {},
      );
      features["editorContext"] = {};
    }
    this.handlers = new Map([...answered, ...Object.entries(handlers)]);
    this.features = features;
  }

  /**
   * From now on these tools answer in a session, as its own, because calls may come right behind the answer that opens
   * it. Returns what undoes that, for the case that it is refused.
   */
  serve(sessionId: string, tools: readonly SessionTool[]): () => void {
    const before = this.#ofSession.get(sessionId);
    this.#ofSession.set(sessionId, byName(tools.filter(isTool)));
    return () => {
      if (before === undefined) this.#ofSession.delete(sessionId);
      else this.#ofSession.set(sessionId, before);
    };
  }

  /** A session is open no longer; harmless if it was not. */
  closed(sessionId: string): void {
    this.#ofSession.delete(sessionId);
  }

  #callTool(params: CallToolParams, context: HandlerContext): Promise<CallToolResult> {
    const tool = this.#ofSession.get(params.sessionId)?.get(params.name) ?? this.#tools.get(params.name);
    if (tool === undefined) throw new RpcError(INVALID_PARAMS, `this host has no tool ${params.name}`);
    return tool.answer(params, context);
  }

  async #hook<H extends "beforeRun" | "afterRun">(hook: H, params: any, context: HandlerContext): Promise<object> {
    const providers = this.#host.providers ?? {};
    const { sourceId } = params as BeforeRunParams;
    const provider = Object.hasOwn(providers, sourceId) ? providers[sourceId] : undefined;
    if (provider === undefined) throw new RpcError(INVALID_PARAMS, `this host has no provider ${sourceId}`);
    return (await provider[hook]?.(params, context)) ?? {};
  }
}

/** What the sidecar is told of tools. */
export function declarations(tools: readonly SessionTool[]): HostTool[] {
  return tools.map((tool) => (isTool(tool) ? tool.declaration : tool));
}

/**
 * The result that a request would itself have been answered with.
 *
 * @throws {RangeError} The request is an approval, and offers no such option.
 */
export function lateResult({ kind, payload }: PendingRequest, answer: Json): object {
  switch (kind) {
    case "approval":
      return outcomeOf((payload as RequestApprovalParams).options, answer as ApprovalAnswer);
    case "elicitation":
      return answer ?? { action: "cancel" };
    case "hostTool":
      return toolResult(answer);
    default:
      return answer ?? {};
  }
}

function byName(tools: readonly Tool[]): ToolsByName {
  return new Map(tools.map((tool) => [tool.declaration.name, tool]));
}

function isTool(tool: SessionTool): tool is Tool {
  return "declaration" in tool;
}
