/** Opens statements with a signature in either form: by a key, or keyless. */
import { openBundle } from '#keyless';
import { openEnvelope } from './envelope.ts';
import type { ReleaseEvent, ReleaseSigner, SignerClaims } from './identity.ts';
import { badForm, parseStrictJson, requireObject } from './json.ts';
import { readStatement, type Statement } from './statement.ts';

/** Maximum size of one payload, in bytes. */
const MAX_PAYLOAD = 200_000;
/** The version of the release file and of the log. */
export const FORMAT = 1;

/** Checks the version of a file. @throws ReleaseError: RELEASE_FORM */
export function checkVersion(value: unknown, label: string): Readonly<Record<string, unknown>> {
  const file = requireObject(value, label);
  if (file['version'] !== FORMAT) throw badForm(label, `of the version ${FORMAT}`);
  return file;
}

/** A verified statement, and the claims of its signer. */
export interface SignedStatement {
  readonly statement: Statement;
  readonly claims: SignerClaims;
}

/** Verifies a signed statement. @throws ReleaseError */
export async function openStatement(
  value: unknown,
  signer: ReleaseSigner,
  events: readonly ReleaseEvent[],
): Promise<SignedStatement> {
  const { payload, claims } =
    'publicKey' in signer
      ? {
          payload: await openEnvelope(value, signer.publicKey),
          claims: { commit: undefined, tag: undefined },
        }
      : await openBundle(value, { ...signer, events });
  return { statement: readStatement(parseStrictJson(payload, 'a statement', MAX_PAYLOAD)), claims };
}
