/** Shows the steps of a login, each with its purpose and its state. */
import type { ZkLoginProgress, ZkLoginStep } from 'sui-enclave/react';
import { Mark } from '../../src/console/parts/mark.tsx';
import { settings } from './surroundings.ts';
import { useSeconds } from './use_seconds.ts';
import { shortenId } from './words.ts';

type State = 'done' | 'now' | 'ahead' | 'failed';

const PROOF_TEXT = settings.provesReally ? (
  'The proving service proves this login with the development key of this machine, and the node checks the proof.'
) : (
  <>
    A fake replaces the proving service: its proof is of another login, and the node does not check it.{' '}
    <code>make prover-dev SIZE=small</code> builds the real one.
  </>
);

const STEPS = [
  {
    title: 'A key',
    text: 'This tab makes a key pair that signs for a few epochs. The nonce of the login commits to its public key.',
  },
  {
    title: 'The provider',
    text: 'You log in at the provider. Its token says who you are and contains the nonce, so the token is valid only for this key.',
  },
  {
    title: 'The token',
    text: 'The page checks state, nonce, issuer, client and times, and removes the token from the address bar and the history.',
  },
  {
    title: 'The salt',
    text: 'The salt service verifies the token and returns your salt, without which nobody can derive your address from your account.',
  },
  {
    title: 'The address',
    text: 'It is derived from the issuer, the client, your id at the issuer and the salt, so it stays the same.',
  },
  { title: settings.provesReally ? 'The proof' : 'The proof, a fake', text: PROOF_TEXT },
  {
    title: 'The session',
    text: 'Until the session’s last epoch ends, this tab can sign transactions with the key and the proof together.',
  },
] as const;

/** Number of completed steps, by the current step of the login. */
const DONE: Readonly<Record<ZkLoginStep, number>> = {
  loading: 0,
  none: 0,
  expired: 0,
  leaving: 1,
  token: 2,
  salt: 3,
  proof: 5,
  open: 7,
};

const PROOF = 5;
const LABELS = { done: 'done', now: 'under way', ahead: 'not yet', failed: 'failed' } as const;

export function Steps({ step, address, error }: ZkLoginProgress) {
  const done = DONE[step];
  const isUnderWay = done > 0 && done < STEPS.length;
  const seconds = useSeconds(step === 'proof' && error === undefined);
  const findState = (index: number): State => {
    if (index < done) return 'done';
    if (index > done || !isUnderWay) return 'ahead';
    return error === undefined ? 'now' : 'failed';
  };
  return (
    <ol className="steps">
      {STEPS.map(({ title, text }, index) => {
        const state = findState(index);
        return (
          <li key={title} data-state={state} aria-current={state === 'now' ? 'step' : undefined}>
            <StepMark state={state} number={index + 1} isReal={index !== PROOF || settings.provesReally} />
            <div>
              <h4>
                {title} <span className="hidden">({LABELS[state]})</span>
                {title === 'The address' && address !== undefined && (
                  <code className="subtle">{shortenId(address)}</code>
                )}
                {index === PROOF && state === 'now' && <span className="subtle"> {seconds} s</span>}
              </h4>
              <p>{text}</p>
            </div>
          </li>
        );
      })}
    </ol>
  );
}

interface MarkProps {
  readonly state: State;
  readonly number: number;
  readonly isReal: boolean;
}

function StepMark({ state, number, isReal }: MarkProps) {
  if (state === 'now') return <span className="spinner" aria-hidden="true" />;
  if (state === 'failed') return <Mark state="failed" />;
  if (state === 'done') return <Mark state={isReal ? 'passed' : 'warning'} />;
  return (
    <span className="number" aria-hidden="true">
      {number}
    </span>
  );
}
