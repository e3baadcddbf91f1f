/** Checks the address of an enclave or a node before a request. It may come from somebody else's link. */

export type Target =
  | {
      readonly url: URL;
      /** Host and port, which the button names before it sends anything. */
      readonly host: string;
    }
  | { readonly refused: string };

const MAX_LENGTH = 2048;

/** Returns the base URL of an enclave or a node. Keeps the path, but removes query and fragment. */
export function parseTarget(text: string): Target {
  const address = text.trim();
  if (address.length > MAX_LENGTH) return { refused: 'The address is too long.' };
  const url = URL.parse(address);
  if (url === null) return { refused: 'Enter a full address, such as https://enclave.example.' };
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    return { refused: `The address must begin with http: or https:, not ${url.protocol.slice(0, 40)}` };
  }
  if (url.username !== '' || url.password !== '') {
    return { refused: 'An address with a user name is refused: the part before the @ can look like a host.' };
  }
  url.search = '';
  url.hash = '';
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return { url, host: url.host };
}
