/** Policy of a page for browsers: headers of each of its files, and a meta element in the page. */
export interface Headers {
  /** The part of the policy that fits in the page's meta element. */
  readonly POLICY: string;
  /** Headers by name, in lower case. */
  readonly HEADERS: Readonly<Record<string, string>>;
}

/**
 * Returns headers by which the page gets no code, style or font but its own files, runs no code from text,
 * and is in no frame.
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
