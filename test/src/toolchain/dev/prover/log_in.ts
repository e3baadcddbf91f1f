/** Logs in at the local oidc-provider without a browser: follows its redirects, and submits its two forms. */

/**
 * @param url the authorization endpoint, with its query
 *
 * @returns the token in the redirect back to the wallet
 */
export async function logInByHttp(url: string, name: string): Promise<string> {
  const cookies = new Map<string, string>();
  const forms = [{ prompt: 'login', login: name, password: 'any' }, { prompt: 'consent' }];
  let at = new URL(url);
  let body: URLSearchParams | undefined;
  for (let step = 0; step < 12; step++) {
    const response = await fetch(at, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') },
      ...(body && { method: 'POST', body }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, key = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      cookies.set(key, value);
    }
    const location = response.headers.get('location');
    if (location === null) {
      const form = forms.shift();
      if (!form) throw new Error(`the provider answered ${response.status} at ${at.pathname}`);
      body = new URLSearchParams(form);
      continue;
    }
    body = undefined;
    at = new URL(location, at);
    const token = new URLSearchParams(at.hash.slice(1)).get('id_token');
    if (token !== null) return token;
  }
  throw new Error('the login does not end');
}
