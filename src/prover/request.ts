/** The JSON that asks for a proof, as wallets send it to a proving service. */
import * as v from 'valibot';
import { ProverError } from './errors.ts';
import type { ProofRequest } from './input.ts';

/** Text only: as a JSON number it would have lost its low digits already. */
const BigNumberText = v.string('must be a text: an integer in decimal, or all its bytes in base64');

const Request = v.strictObject({
  jwt: v.string('must be a text'),
  extendedEphemeralPublicKey: BigNumberText,
  maxEpoch: v.union(
    [v.string(), v.pipe(v.number(), v.safeInteger('must be a whole number'))],
    'must be a whole number',
  ),
  jwtRandomness: BigNumberText,
  salt: BigNumberText,
  keyClaimName: v.string('must be a text, for example "sub"'),
});

/** @throws ProverError that names the member; what it holds is for buildInput to judge */
export function readProofRequest(value: unknown): ProofRequest {
  const result = v.safeParse(Request, value);
  if (result.success) return result.output;
  const [issue] = result.issues;
  const member = v.getDotPath(issue);
  if (member === null) throw new ProverError('PROVER_REQUEST', 'the request must be a JSON object');
  if (issue.type === 'strict_object') {
    throw new ProverError(
      'PROVER_REQUEST',
      issue.expected === 'never' ? `there is no member ${member}` : `${member} is missing`,
    );
  }
  throw new ProverError('PROVER_REQUEST', `${member} ${issue.message}`);
}
