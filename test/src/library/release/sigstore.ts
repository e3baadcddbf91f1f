/**
 * Fakes Sigstore with `@sigstore/mock`: a certificate authority with Certificate Transparency, a transparency
 * log, and the bundles that a workflow of GitHub would sign with them.
 */
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { initializeCA, initializeCTLog, initializeTLog } from '@sigstore/mock';
import { encodePreAuth, PAYLOAD_TYPE } from '../../../../src/library/release/envelope.ts';

const REKOR = 'https://rekor.mock';
/** Rekor's answer: an entry, by its id. */
type LogEntry = Readonly<
  Record<
    string,
    {
      readonly body: string;
      readonly integratedTime: number;
      readonly logID: string;
      readonly logIndex: number;
      readonly verification: {
        readonly signedEntryTimestamp: string;
        readonly inclusionProof: {
          readonly logIndex: number;
          readonly rootHash: string;
          readonly treeSize: number;
          readonly checkpoint: string;
        };
      };
    }
  >
>;

const MINUTE_MS = 60_000;
/** Delay in milliseconds, longer than a test waits for its turn. */
export const LATER_MS = 60 * MINUTE_MS;

/** Extensions of the certificate, as Fulcio writes them for a workflow of GitHub. */
export interface Run {
  readonly issuer: string;
  readonly runner: string;
  readonly repository: string;
  readonly commit: string;
  readonly ref: string;
  readonly repositoryId: string;
  readonly ownerId: string;
  readonly workflow: string;
  readonly event: string;
}

export const RUN: Run = {
  issuer: 'https://token.actions.githubusercontent.com',
  runner: 'github-hosted',
  repository: 'https://github.com/example/price',
  commit: 'c'.repeat(40),
  ref: 'refs/tags/v1.2.0',
  repositoryId: '123456',
  ownerId: '789',
  workflow: '.github/workflows/release.yml',
  event: 'push',
};

const keyPair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
const spki = (key: KeyObject) => key.export({ format: 'der', type: 'spki' });
const base64 = (bytes: ArrayBufferView) => toBuffer(bytes).toString('base64');
const toBuffer = ({ buffer, byteOffset, byteLength }: ArrayBufferView) =>
  Buffer.from(buffer, byteOffset, byteLength);

export class Sigstore {
  readonly #ca: Awaited<ReturnType<typeof initializeCA>>;
  readonly #ctLog: Awaited<ReturnType<typeof initializeCTLog>>;
  readonly #clock: Date;
  readonly #rekorKey: ReturnType<typeof keyPair>;

  private constructor(
    ca: Awaited<ReturnType<typeof initializeCA>>,
    ctLog: Awaited<ReturnType<typeof initializeCTLog>>,
    clock: Date,
    rekorKey: ReturnType<typeof keyPair>,
  ) {
    this.#ca = ca;
    this.#ctLog = ctLog;
    this.#clock = clock;
    this.#rekorKey = rekorKey;
  }

  /** @param clock time of its signatures, which must be later than the call, when the mock makes its root */
  static async start(clock = new Date(Date.now() + LATER_MS)): Promise<Sigstore> {
    const ctLog = await initializeCTLog(keyPair(), clock);
    return new Sigstore(await initializeCA(keyPair(), ctLog, clock), ctLog, clock, keyPair());
  }

  /** The JSON of its TrustedRoot. */
  root(): object {
    const validFor = { start: new Date(this.#clock.getTime() - 2 * LATER_MS).toISOString() };
    const log = (publicKey: ArrayBufferView, baseUrl: string) => ({
      baseUrl,
      hashAlgorithm: 'SHA2_256',
      publicKey: { rawBytes: base64(publicKey), keyDetails: 'PKIX_ECDSA_P256_SHA_256', validFor },
      logId: { keyId: createHash('sha256').update(toBuffer(publicKey)).digest('base64') },
    });
    return {
      mediaType: 'application/vnd.dev.sigstore.trustedroot+json;version=0.1',
      tlogs: [log(spki(this.#rekorKey.publicKey), REKOR)],
      certificateAuthorities: [
        {
          subject: { organization: 'sigstore.mock', commonName: 'sigstore' },
          uri: 'https://fulcio.mock',
          certChain: { certificates: [{ rawBytes: base64(this.#ca.rootCertificate) }] },
          validFor,
        },
      ],
      ctlogs: [log(this.#ctLog.publicKey, 'https://ct.mock')],
      timestampAuthorities: [],
    };
  }

  /**
   * Certifies a key for a run.
   *
   * @param publicKey SPKI in DER
   * @param subject the subject, if it is not the workflow
   * @returns certificate and root, in DER
   */
  async certify(publicKey: Buffer<ArrayBuffer>, run: Run, subject = '') {
    const workflowUri = `${run.repository}/${run.workflow}@${run.ref}`;
    const values: Readonly<Record<number, string>> = {
      8: run.issuer,
      11: run.runner,
      12: run.repository,
      13: run.commit,
      14: run.ref,
      15: run.repositoryId,
      17: run.ownerId,
      18: workflowUri,
      20: run.event,
    };
    const certificate = await this.#ca.issueCertificate({
      publicKey,
      subjectAltName: subject || workflowUri,
      extensions: Object.entries(values).map(([id, value]) => ({ oid: `1.3.6.1.4.1.57264.1.${id}`, value })),
    });
    return [toBuffer(certificate), toBuffer(this.#ca.rootCertificate)] as const;
  }

  /**
   * Logs the signature of an envelope, as Rekor does.
   *
   * @param verifier the certificate, in base64
   * @param delayMs time between certificate and entry
   * @returns the entry by its id
   */
  async log(payload: Buffer, signature: string, verifier: string, delayMs = 0) {
    const rekor = await initializeTLog(REKOR, this.#rekorKey, new Date(this.#clock.getTime() + delayMs));
    return await rekor.log({
      kind: 'dsse',
      apiVersion: '0.0.1',
      spec: {
        payloadHash: { algorithm: 'sha256', value: createHash('sha256').update(payload).digest('hex') },
        signatures: [{ signature, verifier }],
      },
    });
  }

  /**
   * Signs a payload, and returns the bundle.
   *
   * @param run the properties that differ from RUN
   * @param delayMs the time between certificate and log entry
   */
  async sign(payload: string, run: Partial<Run> = {}, { delayMs = 0, subject = '' } = {}) {
    const { publicKey, privateKey } = keyPair();
    const [certificate] = await this.certify(spki(publicKey), { ...RUN, ...run }, subject);
    const bytes = Buffer.from(payload);
    const signature = sign('sha256', encodePreAuth(bytes), privateKey).toString('base64');
    const logEntries = await this.log(bytes, signature, base64(certificate), delayMs);
    const [entry] = Object.values(logEntries) as LogEntry[string][];
    const proof = entry?.verification.inclusionProof;
    if (!entry || !proof) throw new Error('the log has no entry');
    return {
      mediaType: 'application/vnd.dev.sigstore.bundle.v0.3+json',
      verificationMaterial: {
        certificate: { rawBytes: base64(certificate) },
        tlogEntries: [
          {
            logIndex: String(entry.logIndex),
            logId: { keyId: Buffer.from(entry.logID, 'hex').toString('base64') },
            kindVersion: { kind: 'dsse', version: '0.0.1' },
            integratedTime: String(entry.integratedTime),
            inclusionPromise: { signedEntryTimestamp: String(entry.verification.signedEntryTimestamp) },
            inclusionProof: {
              logIndex: String(proof.logIndex),
              rootHash: Buffer.from(proof.rootHash, 'hex').toString('base64'),
              treeSize: String(proof.treeSize),
              hashes: [],
              checkpoint: { envelope: proof.checkpoint },
            },
            canonicalizedBody: String(entry.body),
          },
        ],
        timestampVerificationData: { rfc3161Timestamps: [] },
      },
      dsseEnvelope: {
        payload: bytes.toString('base64'),
        payloadType: PAYLOAD_TYPE,
        signatures: [{ sig: signature }],
      },
    };
  }
}
