/** A certificate authority of the boot test's own, and the certificate that the stand-ins of endpoints show. */
import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import { Extension, GeneralName, id_ce_subjectAltName, SubjectAlternativeName } from '@peculiar/asn1-x509';
import { createCertificate, type Identity, toPem } from '../../../scripts/dev/attestation_ca.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const FILES = ['ca.pem', 'cert.pem', 'key.pem'] as const;

export interface TlsFiles {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Kept in `dir` for a day, so that the test images are not rebuilt each time. */
export function tlsFiles(dir: string, hosts: readonly string[]): TlsFiles {
  const paths = FILES.map((name) => join(dir, name));
  const isYoung = (path: string) => existsSync(path) && Date.now() - statSync(path).mtimeMs < DAY_MS;
  if (!paths.every(isYoung) || !isFor(hosts, readFileSync(paths[1] as string))) {
    mkdirSync(dir, { recursive: true });
    const made = makeTls(hosts);
    for (const [at, name] of (['ca', 'cert', 'key'] as const).entries()) {
      writeFileSync(paths[at] as string, made[name], { mode: 0o600 });
    }
  }
  const [ca, cert, key] = paths.map((path) => readFileSync(path, 'utf8')) as [string, string, string];
  return { ca, cert, key };
}

function isFor(hosts: readonly string[], certificate: Buffer): boolean {
  const names = new X509Certificate(certificate).subjectAltName;
  return names === hosts.map((host) => `DNS:${host}`).join(', ');
}

/** TLS as a real endpoint has it, in front of a stand-in that speaks plain HTTP. */
export function forwardTls(socket: Socket, origin: string, { cert, key }: TlsFiles): void {
  const inside = new TLSSocket(socket, { isServer: true, cert, key });
  const standIn = connect(Number(new URL(origin).port), '127.0.0.1');
  inside.on('error', () => standIn.destroy());
  standIn.on('error', () => inside.destroy());
  inside.pipe(standIn).pipe(inside);
}

/** @param keys of the hosts' certificate: by default new ones, of an elliptic curve */
export function makeTls(
  hosts: readonly string[],
  keys?: Pick<Identity, 'publicKey' | 'privateKey'>,
): TlsFiles {
  const valid = { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + 7 * DAY_MS) };
  const authority = createCertificate({
    name: 'sui-enclave boot test, not an authority',
    ...valid,
    ca: true,
    keyUsage: ['keyCertSign'],
  });
  const names = new SubjectAlternativeName(hosts.map((dNSName) => new GeneralName({ dNSName })));
  const server = createCertificate({
    name: 'endpoints of the boot test',
    issuer: authority,
    ...valid,
    ca: false,
    keyUsage: ['digitalSignature'],
    ...(keys && { keyOf: keys }),
    moreExtensions: [
      new Extension({
        extnID: id_ce_subjectAltName,
        extnValue: new OctetString(AsnConvert.serialize(names)),
      }),
    ],
  });
  return {
    ca: toPem(authority.certificate),
    cert: toPem(server.certificate),
    key: server.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}
