/** Creates certificates for fakes, and puts TLS in front of the fakes, since real endpoints use TLS. */
import { connect, type Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import { Extension, GeneralName, id_ce_subjectAltName, SubjectAlternativeName } from '@peculiar/asn1-x509';
import { createCertificate, type Identity, toPem } from './attestation_ca.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** A certificate, its key and its authority, in PEM. */
export interface TlsFiles {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Decrypts a TLS connection, and forwards it to a fake that speaks plain HTTP. */
export function forwardTls(socket: Socket, origin: string, { cert, key }: TlsFiles): void {
  const tlsSocket = new TLSSocket(socket, { isServer: true, cert, key });
  const fake = connect(Number(new URL(origin).port), '127.0.0.1');
  tlsSocket.on('error', () => fake.destroy());
  fake.on('error', () => tlsSocket.destroy());
  tlsSocket.pipe(fake).pipe(tlsSocket);
}

/**
 * Creates an authority, and a certificate for these hosts.
 *
 * @param keys keys of the certificate. Default: new keys on an elliptic curve
 */
export function makeTls(
  hosts: readonly string[],
  keys?: Pick<Identity, 'publicKey' | 'privateKey'>,
): TlsFiles {
  const valid = { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + 7 * DAY_MS) };
  const authority = createCertificate({
    name: 'sui-enclave DEVELOPMENT ONLY, not an authority',
    ...valid,
    ca: true,
    keyUsage: ['keyCertSign'],
  });
  const names = new SubjectAlternativeName(hosts.map((dNSName) => new GeneralName({ dNSName })));
  const server = createCertificate({
    name: 'fakes of endpoints',
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
