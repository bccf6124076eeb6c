// A client of agent-sidecar: everything that is public, and nothing else.
export { SidecarClient, type StartOptions } from "./client.js";
export type { HandlerContext, RequestHandler } from "./connection.js";
export {
  accept,
  allowAlways,
  allowOnce,
  allowSession,
  type ApprovalAnswer,
  type Decision,
  decline,
  reject,
  rejectAlways,
} from "./consent.js";
export type * from "./contract.js";
export { findSidecar, type Discovery, type SidecarCommand } from "./discovery.js";
export { RpcError, SidecarDied, SidecarError, SidecarIncompatible, SidecarNotFound } from "./errors.js";
export type { EventListener, EventOf, SidecarEvent } from "./events.js";
export type { Trace } from "./frames.js";
export type { Server } from "./handshake.js";
export type { Host, HostProvider } from "./host.js";
export { Run } from "./run.js";
export { Session } from "./session.js";
export { hostTool, type Tool, type ToolAnswer, type ToolCall, ToolFailure } from "./tools.js";
export type {
  Block,
  NewSession,
  NotificationListener,
  Resumption,
  RunInput,
  RunSettings,
  SessionTool,
} from "./types.js";
export { OLDEST_SIDECAR, PINNED_SIDECAR, PROTOCOL_VERSIONS } from "./version.js";
