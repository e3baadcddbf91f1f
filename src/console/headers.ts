/** Browser policy of a page: headers for each of its files, and a meta element in the page. */
export interface Headers {
  /** The part of the policy that fits in the page's meta element. */
  readonly POLICY: string;
  /** Headers by name, in lower case. */
  readonly HEADERS: Readonly<Record<string, string>>;
}

/**
 * Returns headers that let the page load code, styles and fonts only from its own files. They also forbid
 * running code from text, and showing the page in a frame.
 *
 * @param targets to which the page may send requests, in the syntax of `connect-src`
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
      // A meta element can't forbid frames (CSP Level 3, section 3.3), but a header can.
      'content-security-policy': `${POLICY}; frame-ancestors 'none'`,
      'cross-origin-opener-policy': 'same-origin',
      'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    },
  };
}

/**
 * Requests may go to any host, since enclaves and nodes may be anywhere. The page sends requests only after a
 * click.
 */
export const { POLICY, HEADERS } = headersFor('http: https:');
