/**
 * Registers the page's own wallet, a login at an OpenID provider. The connect button lists it beside the
 * installed wallets.
 */
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { registerZkLoginWallet } from 'sui-enclave/wallet';
import { discoverProvider } from 'sui-enclave/zklogin';
import type { LoginSettings } from '../settings.ts';
import { confirmation } from './confirmation.ts';
import { reportExpired } from './expiry.ts';

/** @throws ZkLoginError if the provider does not answer */
export async function registerLogin(client: ClientWithCoreApi, login: LoginSettings): Promise<void> {
  const { issuer, name, clientId, saltUrl, proverUrl } = login;
  const provider = await discoverProvider(issuer, { name });
  registerZkLoginWallet({
    // The list of wallets shows the provider's name, and says that the address is only for this page.
    providers: [{ provider, clientId }],
    redirectUri: new URL('login.html', document.baseURI).href,
    client,
    salt: saltUrl,
    prover: proverUrl,
    legacyAddress: false,
    confirm: confirmation.ask,
    onExpired: reportExpired,
  });
}
