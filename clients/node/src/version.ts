// Which sidecar this client is made for. Constants only.

/** The protocol versions that this client speaks. */
export const PROTOCOL_VERSIONS: readonly number[] = [1];

/** The release that is fetched where no sidecar is installed. */
export const PINNED_SIDECAR = "0.1.0";

/** The oldest release that has everything which this client relies on. */
export const OLDEST_SIDECAR = "0.1.0";

/** By what name this client makes itself known. */
export const CLIENT_ID = "agent-sidecar-client";
