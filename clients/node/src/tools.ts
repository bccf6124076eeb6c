// Tools that a host carries out itself: a function, and what the model has to know of it. Speaks with no sidecar.
import type { HandlerContext } from "./connection.js";
import type { CallToolParams, CallToolResult, HostTool, Json } from "./contract.js";
import { warn } from "./guarded.js";

/**
 * Thrown by a tool to say in words what went wrong: the model reads its message. Of every other error the model learns
 * the name only, because its message may hold what is not the model's to know.
 */
export class ToolFailure extends Error {
  override readonly name = "ToolFailure";
}

/** A call, as a tool sees it. */
export interface ToolCall extends Omit<CallToolParams, "arguments" | "kwargs"> {
  /** The run's `functionInvocationKwargs`, which the model does not see. */
  readonly kwargs: Readonly<Record<string, Json>>;
  /** Aborted when the call is taken back: its run was cancelled, or its time is over. */
  readonly signal: AbortSignal;
  /** Tells the sidecar how the call gets on; it comes back to the host as `tool.delta`. */
  readonly progress: (text: string) => void;
}

/** Text, content blocks, a whole result, or nothing. */
export type ToolAnswer = NonNullable<CallToolResult["content"]> | CallToolResult | null | undefined | void;

/** A tool with what carries it out. Made by `hostTool`. */
export interface Tool {
  /** What the sidecar is told of it. */
  readonly declaration: HostTool;
  /** Carries a call out. Whatever goes wrong is a result too: an error that the model reads. */
  answer(params: CallToolParams, context: HandlerContext): Promise<CallToolResult>;
}

/**
 * Makes a tool.
 *
 * @param declaration Its name, its description and the JSON Schema of its arguments, and when consent is needed.
 * @param carryOut Takes the model's arguments, which the sidecar has held against the schema.
 */
export function hostTool<Arguments extends object = Record<string, Json>>(
  declaration: HostTool,
  carryOut: (args: Arguments, call: ToolCall) => ToolAnswer | Promise<ToolAnswer>,
): Tool {
  return {
    declaration,
    async answer(params, { signal, notify }) {
      const { arguments: args, kwargs = {}, ...named } = params;
      const progress = (text: string) => void notify("$/progress", { token: params.requestId, value: text });
      try {
        return sendable(toolResult(await carryOut(args as Arguments, { ...named, kwargs, signal, progress })));
      } catch (error) {
        if (signal.aborted) throw error;
        return { content: failure(error), isError: true };
      }
    },
  };
}

/** What a tool gave, in the contract's words. */
export function toolResult(answer: ToolAnswer): CallToolResult {
  if (answer === undefined || answer === null) return { content: [] };
  return typeof answer === "string" || Array.isArray(answer) ? { content: answer } : answer;
}

/** The result itself, if JSON can hold it; else what the model is told in its place. */
function sendable(result: CallToolResult): CallToolResult {
  try {
    JSON.stringify(result);
    return result;
  } catch (error) {
    warn(error); // whose text names the result's properties
    return { content: "the tool failed: its result is no JSON", isError: true };
  }
}

function failure(error: unknown): string {
  if (error instanceof ToolFailure) return error.message;
  warn(error);
  return `the tool failed: ${error instanceof Error ? error.name : typeof error}`;
}
