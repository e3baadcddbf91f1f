/** The page of src/library/zklogin/README.md, verbatim. */
import {
  beginLogin,
  completeLogin,
  createEpochSource,
  getProof,
  getSalt,
  type Login,
  loginStage,
  resumeLogin,
  resumeSession,
  type ZkLoginSession,
} from 'sui-enclave/zklogin';
import { app, client, services, show } from './my_wallet.ts';

const currentEpoch = createEpochSource(client);
const legacyAddress = false;

/** Runs at each load of the page. `back` is location.href, or the body of a form_post. */
export async function load(back: string): Promise<void> {
  const stage = loginStage(back);
  if (stage === 'answered') {
    history.replaceState(null, '', '/'); // removes the token from the address bar
    await prove(await completeLogin(back));
  } else if (stage === 'complete') {
    await prove(resumeLogin()); // the page was loaded again before the proof arrived
  } else if (stage === 'open') {
    await use(resumeSession({ currentEpoch }));
  } else {
    show.login('You are not logged in.');
  }
}

export async function logIn(): Promise<void> {
  location.assign(beginLogin({ ...app, currentEpoch: await currentEpoch() }));
}

async function prove(login: Login): Promise<void> {
  const salt = await getSalt(services.salt, login.token);
  show.address(login.address(salt, { legacyAddress }));
  const proof = await getProof(services.prover, login.proofRequest(salt));
  await use(login.open({ salt, proof, legacyAddress, currentEpoch }));
}

async function use(session: ZkLoginSession): Promise<void> {
  if ((await session.state()) === 'usable') show.wallet(session);
  else show.login('Your session has expired.');
}
