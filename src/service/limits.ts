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
  /**
   * Time limit in milliseconds, both for the arrival of a request and for the time from its headers to its
   * answer.
   */
  readonly requestTimeoutMs: number;
}
