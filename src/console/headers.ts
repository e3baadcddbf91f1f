/**
 * What a browser may do with the console: no code, style or font but its own files, no code from text, no frame. It may
 * send requests anywhere, since enclaves and nodes are anywhere; the page itself sends none that nobody clicked for.
 */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // The component kit's marks are images in its style sheets.
  "img-src 'self' data:",
  'connect-src http: https:',
  "base-uri 'none'",
  "form-action 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** For every file, in lower case. A meta element can't forbid frames (CSP Level 3, section 3.3), a header can. */
export const HEADERS = {
  'content-security-policy': `${CONTENT_SECURITY_POLICY}; frame-ancestors 'none'`,
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=()',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;
