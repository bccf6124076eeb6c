// Answers that a person gives: to "may this call be made?", and to a question. Asks nobody.
import type { ApprovalOption, ApprovalOutcome, ElicitResult, Json } from "./contract.js";

type DecisionKind = ApprovalOption["kind"];

/** What is taken where an option is not offered: never more than was meant. */
const NARROWER: Partial<Record<DecisionKind, DecisionKind>> = {
  allowAlways: "allowOnce",
  allowSession: "allowOnce",
  rejectAlways: "rejectOnce",
};

/** What a person decided about a call. Made by `allowOnce`, `reject` and so on. */
export interface Decision {
  readonly decision: DecisionKind;
  /** Why it is rejected; the model reads it. */
  readonly message?: string | undefined;
}

/** A decision, the contract's own outcome, an `optionId`, or nothing where nobody decided: the call is denied. */
export type ApprovalAnswer = Decision | ApprovalOutcome | string | null | undefined | void;

/** This call may be made. */
export function allowOnce(): Decision {
  return { decision: "allowOnce" };
}

/** Calls of this tool may be made for the rest of the session. */
export function allowSession(): Decision {
  return { decision: "allowSession" };
}

/** Calls of this tool may be made from now on, until the rule is revoked. */
export function allowAlways(): Decision {
  return { decision: "allowAlways" };
}

/** This call may not be made; `message` tells the model why. */
export function reject(message?: string): Decision {
  return { decision: "rejectOnce", message };
}

/** Calls of this tool may not be made from now on; `message` tells the model why. */
export function rejectAlways(message?: string): Decision {
  return { decision: "rejectAlways", message };
}

/** The person answered: with an object of the schema that was asked for, or by opening a URL. */
export function accept(content?: Json): ElicitResult {
  return content === undefined ? { action: "accept" } : { action: "accept", content };
}

/** The person will not answer. */
export function decline(): ElicitResult {
  return { action: "decline" };
}

/**
 * An answer in the contract's words, for the options that a request offers. Where an option for the whole session or
 * for ever is meant but not offered, the one for this call is taken.
 *
 * @throws {RangeError} There is no such option.
 */
export function outcomeOf(options: readonly ApprovalOption[], answer: ApprovalAnswer): ApprovalOutcome {
  if (answer === undefined || answer === null) return { outcome: "cancelled" };
  if (typeof answer === "string") return { outcome: "selected", optionId: known(options, answer) };
  if (!("decision" in answer)) return answer;
  const { decision, message } = answer;
  const chosen =
    options.find(({ kind }) => kind === decision) ?? options.find(({ kind }) => kind === NARROWER[decision]);
  if (chosen === undefined) throw new RangeError(`no option of the kind ${decision} is offered`);
  return { outcome: "selected", optionId: chosen.optionId, ...(message !== undefined && { message }) };
}

function known(options: readonly ApprovalOption[], optionId: string): string {
  if (options.some((option) => option.optionId === optionId)) return optionId;
  throw new RangeError(`there is no option ${optionId}; there are ${options.map((one) => one.optionId).join(", ")}`);
}
