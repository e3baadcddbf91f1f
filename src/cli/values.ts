/**
 * The schemas of arguments and options. The text of each issue follows the name of the argument or option.
 */
import { isIPv4 } from 'node:net';
import { isSecureUrl } from 'sui-enclave/url';
import * as v from 'valibot';

export const text = v.string();

export const path = v.pipe(v.string(), v.nonEmpty('must be the path of a file'));

/** Returns the schema of an integer in decimal. */
export function integer(from: number, to: number) {
  const message = `must be an integer from ${from} to ${to}`;
  return v.pipe(
    v.string(),
    v.regex(/^\d{1,9}$/, message),
    v.transform(Number),
    v.minValue(from, message),
    v.maxValue(to, message),
  );
}

export const ipv4 = v.pipe(
  v.string(),
  v.check((address) => isIPv4(address), 'must be an IPv4 address'),
);

/** A range of IPv4 addresses, in CIDR notation. */
export const ipv4Range = v.pipe(
  v.string(),
  v.check((range) => {
    const [, address = '', bits = ''] = /^(.+)\/(\d{1,2})$/.exec(range) ?? [];
    return isIPv4(address) && Number(bits) <= 32;
  }, 'must be IPv4 addresses in CIDR notation, such as 203.0.113.7/32'),
);

export const awsRegion = v.pipe(
  v.string(),
  v.regex(/^[a-z]{2}(-[a-z]+)+-\d$/, 'must be a region such as eu-central-1'),
);

/** The ARN of a secret in AWS Secrets Manager. */
export const secretArn = v.pipe(
  v.string(),
  v.regex(
    /^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]+$/,
    'must be the ARN of a secret: arn:aws:secretsmanager:REGION:ACCOUNT:secret:NAME',
  ),
);

/** The ARN of a key in AWS KMS (Key Management Service). A policy of IAM can't name an alias instead. */
export const kmsKeyArn = v.pipe(
  v.string(),
  v.regex(
    /^arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:key\/(mrk-[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/,
    'must be the ARN of a key: arn:aws:kms:REGION:ACCOUNT:key/ID',
  ),
);

/**
 * The id of an object or a package on Sui, or an address, in full length. A shorter text is more often a
 * truncated copy than a system id such as `0x2`.
 */
export const objectId = v.pipe(
  v.string(),
  v.regex(/^0x[0-9a-f]{64}$/i, 'must be 0x and 64 hexadecimal digits'),
  v.transform((id) => id.toLowerCase()),
);

/** A name in Move: of a module, a struct or a function. */
export const identifier = v.pipe(
  v.string(),
  v.regex(
    /^[a-zA-Z][a-zA-Z0-9_]{0,127}$/,
    'must be a name in Move: a letter, then letters, digits and underscores',
  ),
);

/** The base URL of an enclave, unchanged. */
export const enclaveUrl = v.pipe(
  v.string(),
  v.check((url) => {
    const { protocol, username, password } = URL.parse(url) ?? {};
    return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
  }, 'must be the URL of an enclave: http or https, without a user name'),
);

/** The URL of a service that gets private requests. */
export const secureUrl = v.pipe(
  v.string(),
  v.check((url) => {
    const parsed = URL.parse(url);
    return parsed !== null && isSecureUrl(parsed) && parsed.username === '' && parsed.password === '';
  }, 'must be an https URL, without a user name; http is for this machine only'),
);

/**
 * A time in ISO 8601 with its zone, or in milliseconds since 1970. The result is in milliseconds since 1970.
 */
export const time = v.pipe(
  v.string(),
  v.transform((isoText) => {
    // The platform decides how Date parses other strings.
    const iso = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/;
    const timeMs = /^\d+$/.test(isoText)
      ? Number(isoText)
      : iso.test(isoText)
        ? Date.parse(isoText)
        : Number.NaN;
    return new Date(timeMs).getTime();
  }),
  v.check(
    (timeMs) => !Number.isNaN(timeMs),
    'must be a time such as 2025-04-15T02:25:23Z, or milliseconds since 1970',
  ),
);

/** The name of an enclave on its parent instance, and of the folder with its state. */
export const enclaveName = v.pipe(
  v.string(),
  v.regex(
    /^[A-Za-z0-9][\w.-]{0,63}$/,
    'must be at most 64 letters, digits, dots, dashes and underscores, and begin with a letter or digit',
  ),
  v.check((name) => name !== 'relay', 'must not be relay: the relay has the folder of this name'),
);

/** Size of zkLogin's circuit. */
export const circuitSize = v.picklist(['small', 'full'], 'must be small or full');
