/** Shows an error on a page: its stable code, its message, and advice. */
import { visibleText } from '../../src/console/lib/visible_text.ts';
import { Verdict } from '../../src/console/parts/verdict.tsx';

const LOG_IN = 'Log in again: the address stays the same.';
const TRY = 'Try again. If it happens again, look at the terminal of make dev-wallet.';
const LOOK = 'Look the transaction up by its digest before you send another.';

/** Advice by the prefix of a code. A longer prefix comes before a shorter one. */
const ADVICE: readonly (readonly [string, string])[] = [
  ['ZKLOGIN_PROVIDER_REFUSED', 'Log in again, and approve the request of the provider.'],
  ['ZKLOGIN_STATE', 'The answer belongs to another tab or an earlier login. Log in again in this tab.'],
  ['ZKLOGIN_EXPIRED', LOG_IN],
  ['ZKLOGIN_PROOF', `The node does not accept this proof. Log out, and log in again.`],
  ['ZKLOGIN_TOKEN_TIME', 'The token has expired. Cancel, and log in again.'],
  ['ZKLOGIN_NO_', LOG_IN],
  ['ZKLOGIN_', `${TRY} If the page did not keep this login, log in again.`],
  ['SUI_GAS', 'Get SUI from the faucet.'],
  ['SUI_UNKNOWN_OUTCOME', LOOK],
  ['SUI_NOT_VISIBLE', LOOK],
  ['SUI_', 'Nothing has changed on the chain, except that gas may have been paid. Try again.'],
  ['CLIENT_NOT_REGISTERED', 'The enclave has a new key. Register it, or ask again when it is registered.'],
  ['CLIENT_', 'The enclave’s answer was not accepted, so there is nothing to mint. Ask again.'],
];

/** Returns the stable code of a library error; undefined for any other error. */
export function findCode(error: unknown): string | undefined {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** Turns a library message, which begins in lower case, into a sentence. */
const toSentence = (message: string) => message.charAt(0).toUpperCase() + message.slice(1);

export function Problem({ title, error }: { readonly title: string; readonly error: unknown }) {
  const code = findCode(error);
  const [, advice = TRY] = ADVICE.find(([prefix]) => code?.startsWith(prefix)) ?? [];
  return (
    <div role="alert">
      <Verdict tone="danger" title={title} code={code}>
        <p>{visibleText(toSentence(error instanceof Error ? error.message : String(error)), 400)}</p>
        <p>{advice}</p>
      </Verdict>
    </div>
  );
}
