/** The chain of proof: the code that runs, its key, its signature, and its registration on Sui. */
import { formatAddress, toHex } from '@mysten/sui/utils';
import type { EnclaveClient } from 'sui-enclave/client';
import type { UsedEnclave } from 'sui-enclave/react';
import { ProofStep } from '../parts/proof_step.tsx';
import { enclaveTrouble } from '../trouble.ts';
import type { Registration } from './registration.ts';
import type { Reading } from './weather.ts';

interface Props {
  readonly enclave: UsedEnclave<EnclaveClient>;
  readonly registration: Registration;
  readonly reading: Reading | undefined;
}

export function ProofPanel({ enclave, registration, reading }: Props) {
  const { status, attestation, publicKey, changed, acknowledge } = enclave;
  const isSilent = status === 'failed' && enclaveTrouble(enclave.error, '').kind === 'silent';
  const attested = {
    attested: 'proven',
    attesting: 'waiting',
    failed: isSilent ? 'missing' : 'wrong',
  } as const;
  const image = attestation?.image;
  // After a change, the client accepts an answer by another key, which it has attested itself.
  const key = reading?.answer.publicKey ?? publicKey;
  const isOfDocument = key !== undefined && publicKey !== undefined && toHex(key) === toHex(publicKey);
  return (
    <section className="panel proofs" aria-labelledby="proof-title">
      <h2 id="proof-title">{status === 'failed' ? 'Nothing is proven' : 'Why you can believe it'}</h2>
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
        <ProofStep state={attested[status]} title="It runs the expected code">
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
          {status === 'failed' && <p>{isSilent ? 'Nobody attests it.' : 'Its attestation is not valid.'}</p>}
        </ProofStep>
        <ProofStep state={attested[status]} title="Its key never leaves it">
          {key && (
            <p>
              Key <code>{short(key)}</code>,{' '}
              {isOfDocument ? (
                <>
                  in the attestation of <code>{attestation?.document.moduleId}</code>
                </>
              ) : (
                'attested when its answer came'
              )}
            </p>
          )}
        </ProofStep>
        <ProofStep state={reading ? 'proven' : 'missing'} title="That key signed the reading">
          {reading && (
            <p>
              Signature <code>{short(reading.answer.signature)}</code>
            </p>
          )}
        </ProofStep>
        <RegistrationStep registration={registration} isKeyKnown={publicKey !== undefined} />
      </ol>
    </section>
  );
}

function RegistrationStep({
  registration,
  isKeyKnown,
}: {
  readonly registration: Registration;
  readonly isKeyKnown: boolean;
}) {
  if (!isKeyKnown) return <ProofStep state="missing" title="Sui knows the key" />;
  switch (registration.state) {
    case 'registered':
      return (
        <ProofStep state="proven" title="Sui knows the key">
          <p>
            Enclave <code>{formatAddress(registration.enclaveId)}</code>
          </p>
        </ProofStep>
      );
    case 'stale':
      return (
        <ProofStep state="wrong" title="Sui does not accept the key">
          <p>{registration.why === 'retired' ? 'Its config is retired.' : `It is ${registration.why}.`}</p>
        </ProofStep>
      );
    case 'failed':
      return (
        <ProofStep state="wrong" title="Sui could not be asked">
          <p>The node did not answer.</p>
        </ProofStep>
      );
    default:
      return <ProofStep state="waiting" title="Sui knows the key" />;
  }
}

function short(bytes: Uint8Array): string {
  const hex = toHex(bytes);
  return `${hex.slice(0, 8)}…${hex.slice(-8)}`;
}
