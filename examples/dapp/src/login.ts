/**
 * Runs in the page to which a provider sends the user back. Passes the provider's answer to the page that
 * waits for it.
 */
import { answerLogin } from 'sui-enclave/wallet/redirect';
import './styles.css';

await answerLogin();
