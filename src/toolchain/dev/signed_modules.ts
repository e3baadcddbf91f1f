/**
 * Writes Move modules with answers that an application has signed, for tests of its contract. These tests
 * need no copied bytes, and fail when application and contract differ.
 */
import { toHex } from '@mysten/sui/utils';
import { ConfigError } from 'sui-enclave/errors';
import type { DeclaredStruct } from 'sui-enclave/wire/intent';
import { boot } from 'sui-enclave-server/boot';
import { readServerConfig } from 'sui-enclave-server/config';
import { NsmError } from 'sui-enclave-server/nsm/errors';
import type { NsmTransport } from 'sui-enclave-server/nsm/transport';
import { createLog } from 'sui-enclave-service/log';
import type { Fakes } from 'sui-enclave-testing/fakes';
import { HeldClock } from 'sui-enclave-testing/held_clock';
import { loadForAuthor } from '../application.ts';
import type { ApplicationFolder } from '../project.ts';
import { STAND_IN, settingsInImage, startFakes } from './application.ts';

/** Seed of the key that signs for tests. */
const SEED = new Uint8Array(32).fill(7);

interface Signed {
  readonly payload: DeclaredStruct['payload'];
  readonly timestampMs: bigint;
  /** Values by field name. */
  readonly values: ReadonlyMap<string, unknown>;
  /** BCS of the intent message, in hexadecimal. */
  readonly bytes: string;
  /** Ed25519 signature in hexadecimal. */
  readonly signature: string;
}

/** Data from which the modules of a package are written. */
export interface SignedAnswers {
  /** Public key in hexadecimal. */
  readonly publicKey: string;
  /** Answers by the name of their request. */
  readonly answers: ReadonlyMap<string, Signed>;
}

/**
 * Starts the application with its fakes, runs each of its tasks once, and makes it sign answers to the
 * requests that the fakes name.
 *
 * @returns undefined for an application without fakes
 * @throws ConfigError if the application doesn't start, or does not sign its answer to one of these requests
 */
export async function collectSignedAnswers({
  name,
  folder,
}: ApplicationFolder): Promise<SignedAnswers | undefined> {
  const { manifest, module } = await loadForAuthor(folder, name);
  const fakes = await startFakes(folder);
  if (fakes === undefined) return undefined;
  try {
    const env = {
      ...settingsInImage(folder, manifest.secrets),
      ...fakes.settings,
      // Requests and secrets need not be sealed here.
      APP: name,
      PORT: '0',
      REQUESTS: 'any',
      SECRETS: 'any',
    };
    const recordedAnswers: Omit<Signed, 'signature'>[] = [];
    const recordingModule: typeof module = {
      ...module,
      create: (context) =>
        module.create({
          ...context,
          sign(type, timestampMs, data) {
            // Signing comes first, since it refuses data that the type can't represent.
            const answer = context.sign(type, timestampMs, data);
            const declared = module.signs.find(({ intent }) => intent === type.intent);
            const { intent, message } = type;
            const bytes = message.serialize({ intent, timestamp_ms: timestampMs, payload: data }).toHex();
            const values = new Map(Object.entries(Object(data)));
            if (declared) recordedAnswers.push({ payload: declared.payload, timestampMs, values, bytes });
            return answer;
          },
        }),
    };
    const { origins, secrets } = fakes;
    const server = await boot({
      config: readServerConfig(env),
      env,
      manifest,
      module: recordingModule,
      origins,
      secrets,
      log: createLog('silent', { write() {} }),
      nsm: NO_NSM,
      taskClock: new HeldClock(),
      signingSeed: Uint8Array.from(SEED),
    });
    try {
      for (const name of server.tasks) await server.runTask(name);
      const answers = new Map<string, Signed>();
      for (const [request, example] of Object.entries({ answer: fakes.example, ...fakes.answers })) {
        const { status, signature } = await ask(server.url, example);
        const lastAnswer = recordedAnswers.pop();
        // The example of `dev` may have an answer that is not signed. The tests then use the other requests.
        if (example === fakes.example && fakes.answers !== undefined && signature === undefined) continue;
        if (lastAnswer === undefined || signature === undefined) {
          throw new ConfigError(
            `${STAND_IN}: the application did not sign its answer to ${example.path} (status ${status}), which the tests of its contract need. Send the request to sui-enclave dev, which prints the reason`,
          );
        }
        answers.set(request, { ...lastAnswer, signature });
      }
      return { publicKey: toHex(server.publicKey), answers };
    } finally {
      await server.close();
    }
  } finally {
    await fakes.close();
  }
}

const NO_NSM: NsmTransport = {
  transact: () => Promise.reject(new NsmError('NSM_UNAVAILABLE', 'tests have no NSM')),
  close: () => Promise.resolve(),
};

/** @returns the signature of the answer; undefined if it has none */
async function ask(
  url: string,
  { path, body }: Fakes['example'],
): Promise<{ readonly status: number; readonly signature: string | undefined }> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url + path, {
    ...(body !== undefined && { method: 'POST', headers, body: JSON.stringify(body) }),
  });
  const { status } = response;
  // The application's own routes may return any answer.
  const { signature }: { signature?: unknown } = Object(await response.json().catch(() => undefined));
  return { status, signature: typeof signature === 'string' ? signature : undefined };
}

/**
 * Returns the source of each module by path in the package: `tests/signed_answer.move` for the request
 * `answer`.
 */
export function formatModules(
  packageName: string,
  { publicKey, answers }: SignedAnswers,
): ReadonlyMap<string, string> {
  return new Map(
    [...answers].map(([request, signed]) => [
      `tests/signed_${request}.move`,
      formatModule(`${packageName}::signed_${request}`, publicKey, signed),
    ]),
  );
}

export const HEADER =
  '// Written by `sui-enclave test` from an answer of the application: do not edit, do not commit.';

/** Names of functions that each module has. The function of a field with such a name gets another name. */
const OWN_FUNCTIONS = new Set(['public_key', 'signature', 'signed_bytes', 'timestamp_ms']);

function formatModule(name: string, publicKey: string, signed: Signed): string {
  const { payload, timestampMs, values, bytes, signature } = signed;
  const functions = [
    [
      'The public key of the signer, which comes from a development seed.',
      'public_key',
      'vector<u8>',
      `x"${publicKey}"`,
    ],
    ['The signature over the bytes of the intent message.', 'signature', 'vector<u8>', `x"${signature}"`],
    ['The intent message.', 'signed_bytes', 'vector<u8>', `x"${bytes}"`],
    ['The time of the data, in milliseconds since 1970.', 'timestamp_ms', 'u64', String(timestampMs)],
    ...payload.fields.flatMap(({ name: field, move }) => {
      const literal = formatLiteral(move, values.get(field));
      const label = OWN_FUNCTIONS.has(field) ? `field_${field}` : field;
      return literal === undefined ? [] : [[`The field of \`${payload.name}\`.`, label, move, literal]];
    }),
  ];
  const texts = functions.map(
    ([comment, label, move = '', value]) =>
      `/// ${comment}\npublic fun ${label}(): ${move.replaceAll('String', 'std::string::String')} {\n    ${value}\n}\n`,
  );
  return `${HEADER}\n#[test_only]\nmodule ${name};\n\n${texts.join('\n')}`;
}

/**
 * Formats a value as an expression in Move. Returns undefined if only the struct's own module can make
 * the value.
 */
export function formatLiteral(move: string, value: unknown): string | undefined {
  if (move === 'bool') return String(value);
  if (/^u\d+$/.test(move)) return `${value}${move}`;
  if (move === 'address') return `@${value}`;
  if (move === 'String') return `x"${toHex(new TextEncoder().encode(String(value)))}".to_string()`;
  if (move === 'vector<u8>' && value instanceof Uint8Array) return `x"${toHex(value)}"`;
  const [, generic, inner = ''] = /^(vector|Option)<(.*)>$/.exec(move) ?? [];
  if (generic === 'Option' && value === null)
    return isPlain(inner) ? `option::none<${qualifyStrings(inner)}>()` : undefined;
  if (generic === undefined) return undefined;
  const values = Array.isArray(value) && generic === 'vector' ? value : [value];
  const literals = values.map((element) => formatLiteral(inner, element));
  if (!isPlain(inner) || literals.includes(undefined)) return undefined;
  return generic === 'Option'
    ? `option::some(${literals[0]})`
    : `vector<${qualifyStrings(inner)}>[${literals.join(', ')}]`;
}

/** Returns whether a type contains no struct of the application. */
const isPlain = (move: string) => !/\b(?!vector\b|Option\b|String\b)[A-Z]\w*/.test(move);

const qualifyStrings = (move: string) => move.replaceAll('String', 'std::string::String');
