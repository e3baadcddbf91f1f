/** The address at which a service listens. */
export interface Address {
  readonly host: string;
  /** 0: the system chooses a free port (tests). */
  readonly port: number;
}

/** The limits on requests and connections that a service accepts. */
export interface Limits {
  readonly bodyLimitBytes: number;
  readonly maxConcurrentRequests: number;
  /** Open connections. Beyond the limit, a new one replaces an idle or slow one. */
  readonly maxConnections: number;
  /** Applies to receiving a request, and again to answering it. */
  readonly requestTimeoutMs: number;
}
