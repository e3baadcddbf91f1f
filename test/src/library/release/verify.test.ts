/** A genuine release is accepted in both forms. A forged one is refused with the code of its fault. */
import { createHash } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { formatPcrs } from '../../../../src/library/attestation/image.ts';
import { encodePreAuth, PAYLOAD_TYPE } from '../../../../src/library/release/envelope.ts';
import {
  type RELEASE_CODES,
  ReleaseError,
  type ReleaseSigner,
  verifyRelease,
} from '../../../../src/library/release/index.ts';
import {
  describeHead,
  digestEntry,
  digestSubjects,
  type LogEntry,
  NO_ENTRY,
} from '../../../../src/library/release/log.ts';
import {
  formatStatement,
  PROVENANCE_TYPE,
  RELEASE_TYPE,
  type Statement,
} from '../../../../src/library/release/statement.ts';
import { LATER_MS, RUN, type Run, Sigstore } from './sigstore.ts';

const DAY_MS = 86_400_000;
const NOW = Date.now() + LATER_MS;
const SECRET_KEY = new Uint8Array(32).fill(5);
const publicKey = ed25519.getPublicKey(SECRET_KEY);
const REGISTERS = { pcr0: 'a0'.repeat(48), pcr1: 'b1'.repeat(48), pcr2: 'c2'.repeat(48) };
const hash = (text: string) => createHash('sha256').update(text).digest('hex');
const SUBJECTS = new Map([
  ['nitro.eif', hash('eif')],
  ['nitro.pcrs', hash(formatPcrs(REGISTERS))],
  ['measurements.json', hash('measurements')],
  ['sbom.json', hash('sbom')],
  ['inputs.tar', hash('inputs')],
  ['schema.json', hash('schema')],
  ['move/price.json', hash('bytecode')],
]);
const PREDICATE = {
  version: 'v1.2.0',
  registers: REGISTERS,
  repository: RUN.repository,
  commit: RUN.commit,
  folder: '',
  frameworkVersion: '0.1.0',
};
const provenanceOf = (commit: string) => ({
  buildDefinition: {
    buildType: 'https://actions.github.io/buildtypes/workflow/v1',
    externalParameters: {},
    resolvedDependencies: [{ uri: `git+${RUN.repository}@${RUN.ref}`, digest: { gitCommit: commit } }],
  },
  runDetails: { builder: { id: 'https://github.com/actions/runner/github-hosted' } },
});

const releaseStatement = (changes: object = {}, subjects = SUBJECTS): Statement => ({
  predicateType: RELEASE_TYPE,
  predicate: { ...PREDICATE, ...changes },
  subjects,
});
const provenance = (commit = RUN.commit, subjects = SUBJECTS): Statement => ({
  predicateType: PROVENANCE_TYPE,
  predicate: provenanceOf(commit),
  subjects,
});

/** Function that signs a payload, by key or keyless. */
type Sign = (
  payload: string,
  run?: Partial<Run>,
  options?: { delayMs?: number; subject?: string },
) => Promise<object>;

const signWith =
  (secretKey: Uint8Array): Sign =>
  async (payload) => {
    const bytes = new TextEncoder().encode(payload);
    const sig = Buffer.from(ed25519.sign(encodePreAuth(bytes), secretKey)).toString('base64');
    return {
      payloadType: PAYLOAD_TYPE,
      payload: Buffer.from(payload).toString('base64'),
      signatures: [{ keyid: '', sig }],
    };
  };

const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
const file = (statements: readonly unknown[]) => encode({ version: 1, statements });

function linkEntries(...entries: readonly Omit<LogEntry, 'previous'>[]): LogEntry[] {
  let previous = NO_ENTRY;
  return entries.map((entry) => {
    const linkedEntry = { ...entry, previous };
    previous = digestEntry(linkedEntry);
    return linkedEntry;
  });
}
const createEntry = (version = 'v1.2.0', subjects = SUBJECTS) =>
  ({ kind: 'release', version, subjects: digestSubjects(subjects) }) as const;
const firstEntry = createEntry('v1.1.0', new Map([['nitro.eif', hash('older')]]));

interface Log {
  readonly entries: readonly LogEntry[];
  readonly expiresMs?: number;
  readonly run?: Partial<Run>;
}

async function signLog(
  sign: Sign,
  { entries, expiresMs = NOW + DAY_MS, run = {} }: Log,
): Promise<Uint8Array> {
  const last = entries.at(-1);
  const digest = last === undefined ? NO_ENTRY : digestEntry(last);
  const head = await sign(
    formatStatement(describeHead({ sequence: entries.length, digest, expiresMs })),
    run,
  );
  return encode({ version: 1, entries, head });
}

let sigstore: Sigstore;
let signers: { readonly key: ReleaseSigner; readonly keyless: ReleaseSigner };
let signFunctions: { readonly key: Sign; readonly keyless: Sign };
const identity = {
  issuer: RUN.issuer,
  repositoryId: RUN.repositoryId,
  ownerId: RUN.ownerId,
  workflow: RUN.workflow,
};

beforeAll(async () => {
  sigstore = await Sigstore.start(new Date(NOW));
  signers = { key: { publicKey }, keyless: { identity, trustedRoot: sigstore.root() } };
  signFunctions = { key: signWith(SECRET_KEY), keyless: (...options) => sigstore.sign(...options) };
});

type Form = 'key' | 'keyless';

interface Trial {
  readonly statements?: readonly Statement[];
  readonly run?: Partial<Run>;
  readonly signOptions?: { delayMs?: number; subject?: string };
  readonly log?: Log;
  /** Changes the release before it is verified. */
  readonly change?: (signed: Record<string, unknown>[]) => unknown;
  readonly signer?: () => ReleaseSigner | Promise<ReleaseSigner>;
  readonly seen?: { sequence: number; digest: string };
  readonly now?: number;
}

async function verify(form: Form, trial: Trial = {}) {
  const {
    statements = [provenance(), releaseStatement()],
    run,
    signOptions,
    log,
    change,
    signer,
    seen,
    now = NOW,
  } = trial;
  const sign = signFunctions[form];
  const signed = await Promise.all(
    statements.map(async (statement) => ({ ...(await sign(formatStatement(statement), run, signOptions)) })),
  );
  const content = change?.(signed) ?? signed;
  return await verifyRelease(content instanceof Uint8Array ? content : file(content as unknown[]), {
    signer: signer ? await signer() : signers[form],
    log: await signLog(sign, log ?? { entries: linkEntries(firstEntry, createEntry()) }),
    now,
    ...(seen && { seen }),
  });
}

describe.each(['key', 'keyless'] as const)('the verification of a release by %s', (form) => {
  test('returns the registers, the source, the files and the head of the log of a true release', async () => {
    const { image, source, version, subjects, head } = await verify(form);
    expect({ image, version, files: subjects.size }).toEqual({
      image: REGISTERS,
      version: 'v1.2.0',
      files: 7,
    });
    expect(source).toEqual({
      url: RUN.repository,
      commit: RUN.commit,
      folder: '',
      frameworkVersion: '0.1.0',
    });
    expect(head).toMatchObject({ sequence: 2, expiresMs: NOW + DAY_MS });
    const { sequence, digest } = head;
    await verify(form, {
      seen: { sequence, digest },
      log: {
        entries: linkEntries(firstEntry, createEntry(), createEntry('v1.3.0')),
        run: { ref: 'refs/tags/v1.3.0' },
      },
    });
  });

  const otherFiles = new Map(SUBJECTS).set('nitro.eif', hash('other'));
  test.each<[lie: string, code: keyof typeof RELEASE_CODES, trial: Trial]>([
    [
      'unsigned',
      'RELEASE_FORM',
      { change: (signed) => signed.map(({ payload }) => ({ payload, signatures: [] })) },
    ],
    [
      'with other files in one statement',
      'RELEASE_SUBJECTS',
      { statements: [provenance(RUN.commit, otherFiles), releaseStatement()] },
    ],
    [
      'whose registers differ from its nitro.pcrs',
      'RELEASE_SUBJECTS',
      {
        statements: [provenance(), releaseStatement({ registers: { ...REGISTERS, pcr2: 'd3'.repeat(48) } })],
      },
    ],
    [
      'of a debug enclave, whose registers are zero',
      'RELEASE_FORM',
      { statements: [provenance(), releaseStatement({ registers: { ...REGISTERS, pcr0: '0'.repeat(96) } })] },
    ],
    [
      'without the image',
      'RELEASE_SUBJECTS',
      {
        statements: [
          provenance(RUN.commit, new Map([['sbom.json', hash('sbom')]])),
          releaseStatement({}, new Map([['sbom.json', hash('sbom')]])),
        ],
      },
    ],
    [
      'with another predicate',
      'RELEASE_FORM',
      { statements: [provenance(), { ...releaseStatement(), predicateType: 'urn:x' }] },
    ],
    ['with one statement', 'RELEASE_FORM', { statements: [releaseStatement()] }],
    ['with a statement twice', 'RELEASE_FORM', { statements: [releaseStatement(), releaseStatement()] }],
    [
      'with another commit in its provenance',
      'RELEASE_COMMIT',
      { statements: [provenance('d'.repeat(40)), releaseStatement()] },
    ],
    [
      'that is not in the log',
      'RELEASE_NOT_LOGGED',
      { log: { entries: linkEntries(firstEntry), run: { ref: 'refs/tags/v1.1.0' } } },
    ],
    [
      'whose files are not those in the log',
      'RELEASE_NOT_LOGGED',
      { log: { entries: linkEntries(createEntry('v1.2.0', otherFiles)) } },
    ],
    [
      'of a version that was released twice',
      'RELEASE_CONFLICT',
      { log: { entries: linkEntries(createEntry(), createEntry('v1.2.0', otherFiles)) } },
    ],
    [
      'that is withdrawn',
      'RELEASE_WITHDRAWN',
      { log: { entries: linkEntries(createEntry(), { ...createEntry(), kind: 'withdrawal' }) } },
    ],
    ['whose log has an expired head', 'RELEASE_HEAD_EXPIRED', { now: NOW + DAY_MS + 1 }],
    [
      'whose log was rolled back',
      'RELEASE_HEAD_ROLLED_BACK',
      {
        log: { entries: linkEntries(createEntry()) },
        seen: { sequence: 2, digest: digestEntry(linkEntries(firstEntry, createEntry())[1] as LogEntry) },
      },
    ],
    [
      'whose log was rewritten',
      'RELEASE_HEAD_ROLLED_BACK',
      {
        log: { entries: linkEntries(createEntry('v1.0.0'), createEntry()) },
        seen: { sequence: 1, digest: digestEntry(linkEntries(firstEntry)[0] as LogEntry) },
      },
    ],
    [
      'whose log lost an entry',
      'RELEASE_LOG',
      { log: { entries: linkEntries(firstEntry, createEntry(), createEntry('v1.3.0')).slice(1) } },
    ],
    ['with an empty log', 'RELEASE_FORM', { log: { entries: [] } }],
    ['of 100 MB', 'RELEASE_TOO_LARGE', { change: () => new Uint8Array(100_000_000) }],
    [
      'with a name twice in its JSON',
      'RELEASE_JSON',
      {
        change: (signed) =>
          new TextEncoder().encode(`{"version":1,"statements":[],"statements":${JSON.stringify(signed)}}`),
      },
    ],
    ['that is not JSON', 'RELEASE_JSON', { change: () => new TextEncoder().encode('{') }],
    [
      'in a file of another version',
      'RELEASE_FORM',
      { change: (signed) => encode({ version: 2, statements: signed }) },
    ],
  ])('refuses a release %s', async (_, code, trial) => {
    await expect(verify(form, trial)).rejects.toMatchObject({ code });
  });

  test('refuses a statement whose bytes were changed', async () => {
    const change = (signed: Record<string, unknown>[]) =>
      JSON.parse(JSON.stringify(signed).replace(/"payload":"(....)/, '"payload":"$1AAAA'));
    await expect(verify(form, { change })).rejects.toMatchObject({
      code: form === 'key' ? 'RELEASE_SIGNATURE' : 'RELEASE_INCLUSION',
    });
  });
});

describe('the verification of a release by key', () => {
  test('throws a ReleaseError or returns the same release, whatever bytes are cut out or changed', async () => {
    const sign = signFunctions.key;
    const statements = [provenance(), releaseStatement()].map((statement) =>
      sign(formatStatement(statement)),
    );
    const release = file(await Promise.all(statements));
    const log = await signLog(sign, { entries: linkEntries(firstEntry, createEntry()) });
    const options = { signer: signers.key, log, now: NOW };
    const expected = await verifyRelease(release, options);
    await fc.assert(
      fc.asyncProperty(
        fc.nat(release.length - 1),
        fc.nat(20),
        fc.uint8Array({ maxLength: 4 }),
        async (start, length, inserted) => {
          const changed = [...release.slice(0, start), ...inserted, ...release.slice(start + length)];
          const verdict = await verifyRelease(Uint8Array.from(changed), options).catch((error) => error);
          if (!(verdict instanceof ReleaseError)) expect(verdict).toEqual(expected);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('refuses the key of somebody else', async () => {
    const signer = () => ({ publicKey: ed25519.getPublicKey(new Uint8Array(32).fill(6)) });
    await expect(verify('key', { signer })).rejects.toMatchObject({ code: 'RELEASE_SIGNATURE' });
  });

  test('refuses a head that another key has signed', async () => {
    const log = await signLog(signWith(new Uint8Array(32).fill(6)), { entries: linkEntries(createEntry()) });
    const statements = [provenance(), releaseStatement()].map(formatStatement);
    const release = file(await Promise.all(statements.map((text) => signFunctions.key(text))));
    await expect(verifyRelease(release, { signer: { publicKey }, log, now: NOW })).rejects.toMatchObject({
      code: 'RELEASE_SIGNATURE',
    });
  });

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['a short key', { publicKey: new Uint8Array(31) }],
    ['a key and an identity', { publicKey, identity, trustedRoot: {} }],
    ['an identity without a root', { identity }],
    [
      'an identity with a name in place of a number',
      { identity: { ...identity, ownerId: 'example' }, trustedRoot: {} },
    ],
    ['an unknown property', { identity: { ...identity, branch: 'main' }, trustedRoot: {} }],
  ])('treats a signer that is %s as a mistake', async (_, signer) => {
    await expect(verify('key', { signer: () => signer as ReleaseSigner })).rejects.toMatchObject({
      code: 'RELEASE_OPTION',
    });
  });
});

describe('verifyRelease', () => {
  const attempt = async (changes: object, content?: unknown) => {
    const sign = signFunctions.key;
    const statements = [provenance(), releaseStatement()].map((statement) =>
      sign(formatStatement(statement)),
    );
    const release = file(await Promise.all(statements));
    const options = {
      signer: signers.key,
      log: await signLog(sign, { entries: linkEntries(createEntry()) }),
      now: NOW,
    };
    return await verifyRelease((content ?? release) as Uint8Array, { ...options, ...changes });
  };
  const [head] = linkEntries(createEntry()).map((last) => ({ sequence: 1, digest: digestEntry(last) }));

  test.each<[string, object]>([
    ['a time that is not a number', { now: Number.NaN }],
    ['a time that is a string', { now: '2026-01-01' }],
    ['an invalid Date', { now: new Date('soon') }],
    ['an infinite time', { now: Number.POSITIVE_INFINITY }],
    ['a misspelt option', { sean: head }],
    ['a head without a digest', { seen: { sequence: 1 } }],
    ['a head with the sequence 0', { seen: { ...head, sequence: 0 } }],
    ['a head that is null', { seen: null }],
    ['a log that is a string', { log: '{}' }],
    ['no log', { log: undefined }],
  ])('treats %s as a mistake', async (_, changes) => {
    await expect(attempt(changes)).rejects.toMatchObject({ name: 'ReleaseError', code: 'RELEASE_OPTION' });
  });

  test('treats a release that is a string as a mistake', async () => {
    await expect(attempt({}, '{}')).rejects.toMatchObject({ code: 'RELEASE_OPTION' });
  });

  test('accepts a Date, and a head that was seen before', async () => {
    await expect(attempt({ now: new Date(NOW), seen: head })).resolves.toMatchObject({ version: 'v1.2.0' });
  });
});

describe('the verification of a keyless release', () => {
  test.each<[lie: string, property: string, run: Partial<Run>]>([
    ['of another issuer', 'issuer', { issuer: 'https://issuer.example' }],
    ['of a repository that was created again under its name', 'repository id', { repositoryId: '999' }],
    ['of another owner', 'owner id', { ownerId: '1' }],
    ['of a branch', 'source ref', { ref: 'refs/heads/main' }],
    ['of a pull request', 'event', { event: 'pull_request_target' }],
    ['of a run that was started by hand', 'event', { event: 'workflow_dispatch' }],
    ['of a self-hosted runner', 'runner environment', { runner: 'self-hosted' }],
    ['of another workflow', 'workflow', { workflow: '.github/workflows/test.yml' }],
  ])('refuses a release %s', async (_, property, run) => {
    await expect(verify('keyless', { run })).rejects.toMatchObject({ code: 'RELEASE_IDENTITY', property });
  });

  test('accepts a head that was renewed by hand, but not by a schedule', async () => {
    const entries = linkEntries(createEntry());
    await verify('keyless', { log: { entries, run: { event: 'workflow_dispatch' } } });
    await expect(verify('keyless', { log: { entries, run: { event: 'schedule' } } })).rejects.toMatchObject({
      code: 'RELEASE_IDENTITY',
    });
  });

  test('refuses a head that the workflow of an older tag has signed, even for a withdrawal', async () => {
    const newer = [createEntry(), createEntry('v1.3.0', new Map([['nitro.eif', hash('newer')]]))];
    const withdrawal = { ...firstEntry, kind: 'withdrawal' } as const;
    const run = { ref: 'refs/tags/v1.3.0', event: 'workflow_dispatch' };
    for (const entries of [
      linkEntries(firstEntry, ...newer),
      linkEntries(firstEntry, ...newer, withdrawal),
    ]) {
      await verify('keyless', { log: { entries, run } });
      const older = { ...run, ref: RUN.ref };
      await expect(verify('keyless', { log: { entries, run: older } })).rejects.toMatchObject({
        code: 'RELEASE_IDENTITY',
        property: 'source ref',
      });
    }
  });

  test('refuses a workflow that another workflow calls', async () => {
    const subject = 'https://github.com/other/reusable/.github/workflows/x.yml@refs/heads/main';
    await expect(verify('keyless', { signOptions: { subject } })).rejects.toMatchObject({
      code: 'RELEASE_IDENTITY',
      property: 'subject',
    });
  });

  test.each<[string, Partial<Run>]>([
    ['commit', { commit: 'd'.repeat(40) }],
    ['tag', { ref: 'refs/tags/v9.9.9' }],
  ])("refuses a certificate whose %s is not the statement's", async (_, run) => {
    await expect(verify('keyless', { run })).rejects.toMatchObject({ code: 'RELEASE_COMMIT' });
  });

  test('refuses a certificate that had expired when it signed', async () => {
    await expect(verify('keyless', { signOptions: { delayMs: 3_600_000 } })).rejects.toMatchObject({
      code: 'RELEASE_CERTIFICATE',
    });
  });

  test('refuses another root', async () => {
    const signer = async () => ({ identity, trustedRoot: (await Sigstore.start(new Date(NOW))).root() });
    await expect(verify('keyless', { signer })).rejects.toMatchObject({
      code: expect.stringMatching(/^RELEASE_(CERTIFICATE|INCLUSION)$/),
    });
    const notARoot = () => ({ identity, trustedRoot: { tlogs: 5 } });
    await expect(verify('keyless', { signer: notARoot })).rejects.toMatchObject({ code: 'RELEASE_OPTION' });
  });

  test('refuses a statement without an entry in a log, or with the entry of another statement', async () => {
    const replaceMaterial = (signed: Record<string, unknown>[], material: (index: number) => object) =>
      signed.map((bundle, index) => ({
        ...bundle,
        verificationMaterial: { ...Object(bundle['verificationMaterial']), ...material(index) },
      }));
    const removeEntries = (signed: Record<string, unknown>[]) =>
      replaceMaterial(signed, () => ({ tlogEntries: [] }));
    await expect(verify('keyless', { change: removeEntries })).rejects.toMatchObject({
      code: expect.stringMatching(/^RELEASE_(INCLUSION|FORM)$/),
    });
    const swapEntries = (signed: Record<string, unknown>[]) =>
      replaceMaterial(signed, (index) => ({
        tlogEntries: Object(signed[1 - index]?.['verificationMaterial']).tlogEntries,
      }));
    await expect(verify('keyless', { change: swapEntries })).rejects.toMatchObject({
      code: 'RELEASE_INCLUSION',
    });
  });

  test.each([['application/vnd.dev.sigstore.bundle.v0.2+json'], ['application/json']])(
    'refuses the media type %s',
    async (mediaType) => {
      const change = (signed: Record<string, unknown>[]) =>
        signed.map((bundle) => ({ ...bundle, mediaType }));
      await expect(verify('keyless', { change })).rejects.toMatchObject({ code: 'RELEASE_FORM' });
    },
  );

  test('refuses a signature by key', async () => {
    const statements = [provenance(), releaseStatement()].map(formatStatement);
    const release = file(await Promise.all(statements.map((text) => signFunctions.key(text))));
    const log = await signLog(signFunctions.keyless, { entries: linkEntries(createEntry()) });
    await expect(verifyRelease(release, { signer: signers.keyless, log, now: NOW })).rejects.toMatchObject({
      code: 'RELEASE_FORM',
    });
  });
});
