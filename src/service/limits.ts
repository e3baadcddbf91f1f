/** The address at which a service listens. */
export interface Address {
  readonly host: string;
  /** The port. With 0, the system chooses a free port (for tests). */
  readonly port: number;
}

/** The limits on requests and connections that a service accepts. */
export interface Limits {
  readonly bodyLimitBytes: number;
  readonly maxConcurrentRequests: number;
  /** Maximum number of open connections. Beyond it, a new connection replaces an idle or slow one. */
  readonly maxConnections: number;
  /** Time limit for receiving a request, and again for answering it, in milliseconds. */
  readonly requestTimeoutMs: number;
}
