/** Parses the JSON request for a proof that wallets send to a proving service. */

import type { ProofRequest } from 'sui-enclave/zklogin/services';
import * as v from 'valibot';
import { ProverError } from './errors.ts';

/**
 * Schema of a large number. It must be a string, since a JSON number would already have lost its low digits.
 */
const BigNumberString = v.string('must be a string: an integer in decimal, or all its bytes in base64');

const Request = v.strictObject({
  jwt: v.string('must be a string'),
  extendedEphemeralPublicKey: BigNumberString,
  maxEpoch: v.union(
    [v.string(), v.pipe(v.number(), v.safeInteger('must be an integer'))],
    'must be an integer',
  ),
  jwtRandomness: BigNumberString,
  salt: BigNumberString,
  keyClaimName: v.string('must be a string, for example "sub"'),
});

/**
 * Returns a request whose names and types are right. buildInput checks the values.
 *
 * @throws ProverError: PROVER_REQUEST, which names the property
 */
export function readProofRequest(value: unknown): ProofRequest {
  const parsed = v.safeParse(Request, value);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  const property = v.getDotPath(issue);
  if (property === null) throw new ProverError('PROVER_REQUEST', 'the request must be a JSON object');
  if (issue.type === 'strict_object') {
    throw new ProverError(
      'PROVER_REQUEST',
      issue.expected === 'never' ? `unknown property: ${property}` : `${property} is missing`,
    );
  }
  throw new ProverError('PROVER_REQUEST', `${property} ${issue.message}`);
}
