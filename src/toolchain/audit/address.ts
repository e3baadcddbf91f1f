/**
 * Checks the address that an audit fetches sources from. The admin wrote this address on chain, and the
 * auditor's machine would send the requests.
 */
import { lookup } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { UsageError } from 'sui-enclave-cli/command_line';
import { printable } from 'sui-enclave-cli/printable';
import { AuditError } from './errors.ts';

/** The address from which a repository is fetched. */
export interface Address {
  readonly url: string;
  /**
   * `<host>:443:<address>,…` for curl, so that git connects to the addresses that were checked. Undefined
   * lets the resolver choose.
   */
  readonly resolved: string | undefined;
}

/** Addresses of this machine, of its networks, or of no host. */
const PRIVATE = new BlockList();
for (const [net, prefix] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
] as const) {
  PRIVATE.addSubnet(net, prefix, 'ipv4');
}
/** The public addresses of IPv6. All others belong to this machine, to its networks, or to no host yet. */
const PUBLIC = new BlockList();
PUBLIC.addSubnet('2000::', 3, 'ipv6');
/** Networks that embed IPv4 addresses, or that are reserved for examples. */
for (const [net, prefix] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
] as const) {
  PRIVATE.addSubnet(net, prefix, 'ipv6');
}

export function isPublic(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !PRIVATE.check(address, 'ipv4');
  return family === 6 && PUBLIC.check(address, 'ipv6') && !PRIVATE.check(address, 'ipv6');
}

/** The addresses of a host. */
export type Resolver = (host: string) => Promise<readonly string[]>;

const resolveHost: Resolver = async (host) =>
  (await lookup(host, { all: true })).map(({ address }) => address);

const createRefusal = (url: string, why: string) =>
  new AuditError(
    'SOURCE_REFUSED',
    `${JSON.stringify(printable(url))} ${why}. If you trust it, pass it, or the folder of a clone on this machine, as --source`,
  );

/**
 * Checks the address of a repository, and resolves its host, unless the auditor named the address.
 *
 * @param isNamed whether the auditor named the address, which then may have a port and be in a private
 *   network
 * @throws AuditError: SOURCE_REFUSED; NOT_FULLY_CHECKED, if the host has no address. UsageError, if the
 *   auditor named an invalid address
 */
export async function sourceAddress(
  text: string,
  isNamed: boolean,
  resolve: Resolver = resolveHost,
): Promise<Address> {
  // The pattern comes first: each parser of addresses repairs invalid ones in its own way.
  const host = /^https:\/\/([A-Za-z0-9.-]+)(?::\d{1,5})?\/[\w.~%+@/-]*$/.exec(text)?.[1];
  const url = URL.parse(text);
  if (host === undefined || url === null || url.protocol !== 'https:' || url.username !== '') {
    if (isNamed)
      throw new UsageError(`--source ${printable(text)} is not an https address of a host and a path`);
    throw createRefusal(text, 'is not an https address of a host and a path');
  }
  if (isNamed) return { url: url.href, resolved: undefined };
  if (url.port !== '') throw createRefusal(text, 'names a port');
  const { hostname } = url;
  if (isIP(hostname) !== 0 || !/\.[a-z]/i.test(hostname) || /(^|\.)localhost\.?$/i.test(hostname)) {
    throw createRefusal(text, 'does not name a public host');
  }
  const addresses = await resolve(hostname).catch(() => []);
  if (addresses.length === 0) {
    throw new AuditError('NOT_FULLY_CHECKED', `the host ${hostname} of the source could not be resolved`);
  }
  const privateAddress = addresses.find((address) => !isPublic(address));
  if (privateAddress !== undefined)
    throw createRefusal(text, `has the address ${privateAddress}, which is in a private network`);
  const curlAddresses = addresses.map((address) => (isIP(address) === 6 ? `[${address}]` : address));
  return { url: url.href, resolved: `${hostname}:443:${curlAddresses.join(',')}` };
}
