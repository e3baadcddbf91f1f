/** Shows the content of the bytes that the wallet is about to sign, and waits for the user's answer. */
import { TransactionDataBuilder } from '@mysten/sui/transactions';
import { type KeyboardEvent, useEffect, useRef } from 'react';
import type { ConfirmRequest } from 'sui-enclave/wallet';
import { Facts } from '../parts/facts.tsx';
import { type Question, useQuestion } from './confirmation.ts';
import { describeGas, describeSteps, type Step } from './transaction_words.ts';
import { useArmed } from './use_armed.ts';

interface Content {
  readonly steps: readonly Step[];
  readonly facts: readonly (readonly [name: string, value: string])[];
}

export function ConfirmDialog({ packageId }: { readonly packageId: string }) {
  const question = useQuestion();
  // Each question gets a new element, so that no state of the last question remains.
  return question && <OpenDialog key={question.id} question={question} packageId={packageId} />;
}

/** Ignores repeated key events: a key that is held down would answer one question after another. */
function ignoreRepeats(event: KeyboardEvent): void {
  if (event.repeat && ['Enter', ' ', 'Escape'].includes(event.key)) event.preventDefault();
}

function OpenDialog({ question, packageId }: { readonly question: Question; readonly packageId: string }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const refuse = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    refuse.current?.focus();
  }, []);
  const isArmed = useArmed();
  const { request, answer } = question;
  const content = describeContent(request, packageId);
  const isForeign = content?.steps.some(({ isExpected }) => !isExpected) ?? true;
  return (
    <dialog
      ref={dialog}
      className="confirm"
      aria-labelledby="confirm-title"
      onKeyDown={ignoreRepeats}
      // This handles Escape. A browser may close the dialog without this event.
      onCancel={() => answer(false)}
      onClose={() => answer(false)}
    >
      <h2 id="confirm-title">
        {request.kind === 'transaction' ? 'Sign this transaction?' : 'Sign this message?'}
      </h2>
      <p className="subtle">Nothing is signed or sent until you agree.</p>
      {content && request.kind === 'transaction' && (
        <ol className="steps">
          {content.steps.map(({ text, isExpected }, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the steps of a transaction never change
            <li key={index} className={isExpected ? undefined : 'foreign'}>
              {text}
            </li>
          ))}
        </ol>
      )}
      {content && request.kind === 'message' && <blockquote>{content.steps[0]?.text}</blockquote>}
      {isForeign && request.kind === 'transaction' && (
        <p className="warning" role="alert">
          {content
            ? 'This page makes no transaction with such a step. Sign only if you know why it is there.'
            : "This transaction can't be explained, so it can't be signed here."}
        </p>
      )}
      {content && <Facts facts={content.facts} />}
      <div className="buttons">
        <button ref={refuse} type="button" onClick={() => answer(false)}>
          Don't sign
        </button>
        <button
          type="button"
          className="primary"
          disabled={content === undefined || !isArmed}
          onClick={() => answer(true)}
        >
          Sign
        </button>
      </div>
    </dialog>
  );
}

/** Describes a request. Returns undefined if that is impossible; such a request can't be signed. */
function describeContent(request: ConfirmRequest, packageId: string): Content | undefined {
  const { wallet, address, chain } = request;
  if (request.kind === 'message') {
    const text = new TextDecoder().decode(request.message);
    return {
      steps: [{ text, isExpected: true }],
      facts: [
        ['Wallet', wallet],
        ['Address', address],
        ['Network', chain],
      ],
    };
  }
  try {
    const { payer, isOwn, budget } = describeGas(request.transaction);
    return {
      steps: describeSteps(request.transaction, packageId),
      facts: [
        ['Wallet', wallet],
        ['Sender', address],
        ['Network', chain],
        ['Gas', `at most ${budget}, paid by ${isOwn ? 'you' : payer}`],
        ['Digest', TransactionDataBuilder.getDigestFromBytes(request.bytes)],
      ],
    };
  } catch {
    return undefined;
  }
}
