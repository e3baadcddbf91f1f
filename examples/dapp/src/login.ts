/** The page that a provider sends the user back to: hands the answer to the page that waits for it. */
import { answerLogin } from 'sui-enclave/wallet/redirect';
import './styles.css';

await answerLogin();
