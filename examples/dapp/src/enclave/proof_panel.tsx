/** Shows the chain of proof: the code that runs, its key, its signature, and its registration on Sui. */
import { formatAddress, toHex } from '@mysten/sui/utils';
import type { EnclaveClient } from 'sui-enclave/client';
import type { UsedEnclave } from 'sui-enclave/react';
import { ProofStep } from '../parts/proof_step.tsx';
import { judgeSteps, PROOF_STEPS } from './proof.ts';
import type { Registration } from './registration.ts';
import type { ReadingState } from './use_reading.ts';

interface Props {
  readonly enclave: UsedEnclave<EnclaveClient>;
  readonly registration: Registration;
  readonly reading: ReadingState;
  /** Error of the chain, if the mint of this reading failed. */
  readonly mintError: unknown;
}

export function ProofPanel({ enclave, registration, reading: state, mintError }: Props) {
  const { status, attestation, publicKey, changed, acknowledge } = enclave;
  const reading = state.status === 'answered' ? state.reading : undefined;
  const verdicts = judgeSteps({
    attestation: status,
    attestationError: enclave.error,
    reading: state.status,
    readingError: state.status === 'failed' ? state.error : undefined,
    registration,
    mintError,
  });
  const isRefused = PROOF_STEPS.some((step) => verdicts[step].state === 'wrong');
  const image = attestation?.image;
  // After a change of keys, the client accepts an answer signed with a new key that it has attested itself.
  const key = reading?.answer.publicKey ?? publicKey;
  const isOfDocument = key !== undefined && publicKey !== undefined && toHex(key) === toHex(publicKey);
  return (
    <section className="panel proofs" aria-labelledby="proof-title">
      <h2 id="proof-title">
        {isRefused
          ? 'Why you can’t believe it'
          : status === 'failed'
            ? 'Nothing is proven'
            : 'Why you can believe it'}
      </h2>
      {changed && (
        <div className="note stale" role="alert">
          <h3>The enclave has another key</h3>
          <p>
            It was <code>{short(changed.before)}</code>, and is <code>{short(changed.now)}</code>: the enclave
            has restarted, or another one answers. The new key is attested too.
          </p>
          <button type="button" onClick={acknowledge}>
            Continue with the new key
          </button>
        </div>
      )}
      <ol>
        <ProofStep verdict={verdicts.code} title="It runs the expected code">
          {image && (
            <details>
              <summary>Registers {image.pcr0.slice(0, 8)}… match</summary>
              <dl className="registers">
                {Object.entries(image).map(([name, value]) => (
                  <div key={name}>
                    <dt>{name.toUpperCase()}</dt>
                    <dd>{value}</dd>
                  </div>
                ))}
              </dl>
            </details>
          )}
          {status === 'attesting' && <p>Fetching its attestation document.</p>}
          {status === 'failed' && verdicts.code.state === 'missing' && (
            <p>There is no attestation document.</p>
          )}
        </ProofStep>
        <ProofStep verdict={verdicts.key} title="Its key never leaves it">
          {key && (
            <p>
              Key <code>{short(key)}</code>,{' '}
              {isOfDocument ? (
                <>
                  in the attestation of <code>{attestation?.document.moduleId}</code>
                </>
              ) : (
                'attested when its answer arrived'
              )}
            </p>
          )}
        </ProofStep>
        <ProofStep verdict={verdicts.signature} title="That key signed the reading">
          {reading && (
            <p>
              Signature <code>{short(reading.answer.signature)}</code>
            </p>
          )}
        </ProofStep>
        <ProofStep verdict={verdicts.registration} title="Sui accepts the key">
          {registration.state === 'registered' && publicKey !== undefined && (
            <p>
              Enclave <code>{formatAddress(registration.enclaveId)}</code>
            </p>
          )}
          {registration.state === 'failed' && <p>The node of Sui did not answer.</p>}
        </ProofStep>
      </ol>
    </section>
  );
}

function short(bytes: Uint8Array): string {
  const hex = toHex(bytes);
  return `${hex.slice(0, 8)}…${hex.slice(-8)}`;
}
