/** What a browser may do with a page, for its every file and in the page itself. */
export interface Headers {
  /** What the page's meta element can say. */
  readonly POLICY: string;
  /** By name, in lower case. */
  readonly HEADERS: Readonly<Record<string, string>>;
}

/**
 * No code, style or font but its own files, no code from text, no frame.
 *
 * @param targets where it may send requests, as `connect-src` has it
 */
export function headersFor(targets: string): Headers {
  const POLICY = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    // The component kit's marks are images in its style sheets.
    "img-src 'self' data:",
    `connect-src ${targets}`,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
  return {
    POLICY,
    HEADERS: {
      // A meta element can't forbid frames (CSP Level 3, section 3.3), a header can.
      'content-security-policy': `${POLICY}; frame-ancestors 'none'`,
      'cross-origin-opener-policy': 'same-origin',
      'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    },
  };
}

/** Anywhere, since enclaves and nodes are anywhere; the page itself sends none that nobody clicked for. */
export const { POLICY, HEADERS } = headersFor('http: https:');
