/**
 * Reads from the environment the registers and addresses that this example trusts, and the addresses of its
 * services. README.md explains each variable.
 */
import { readFileSync } from 'node:fs';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { isValidSuiObjectId } from '@mysten/sui/utils';
import { certificatesFromPem, parsePcrs } from 'sui-enclave/client';
import { toSuiError } from 'sui-enclave/sui';

// A failure with a code is printed as one line. Any other error is a bug, and its stack is printed.
process.on('uncaughtException', (thrown) => {
  const error = findSuiError(thrown);
  console.error('code' in error ? `${error.code}: ${error.message}` : error);
  process.exit(1);
});

/** Returns the SuiError of an error that a Sui client threw. Only a SuiError has a code and advice. */
function findSuiError(thrown: Error): Error {
  try {
    return toSuiError(thrown);
  } catch {
    return thrown;
  }
}

/** Ends the program with one line that names the variable. */
function refuse(name: string, problem: string): never {
  console.error(`${name} ${problem}: see README.md`);
  process.exit(2);
}

function read<T>(name: string, parse: (value: string) => T): T {
  const value = process.env[name];
  if (!value) return refuse(name, 'is not set');
  try {
    return parse(value);
  } catch (error) {
    return refuse(name, `can't be used (${error instanceof Error ? error.message : error})`);
  }
}

const readUrl = (name: string) => read(name, (value) => new URL(value).href);
const readFile = (name: string) => read(name, (path) => readFileSync(path, 'utf8'));

function readId(name: string): string {
  const id = read(name, String);
  return isValidSuiObjectId(id) ? id : refuse(name, 'is not an object id: 0x and 64 hexadecimal digits');
}

/** Returns the enclave's URL, and the registers of the images whose enclaves may answer there. */
export function readEnclave() {
  const images = [read('ENCLAVE_PCRS', (path) => parsePcrs(readFileSync(path, 'utf8')))];
  // Without this setting, the client trusts AWS's root. The owner of a development root can sign anything.
  const roots = process.env['ENCLAVE_ROOT'] ? certificatesFromPem(readFile('ENCLAVE_ROOT')) : undefined;
  if (roots) console.warn('ENCLAVE_ROOT is set: emulated enclaves are trusted. For development only.');
  return { url: readUrl('ENCLAVE_URL'), options: { policy: { images }, ...(roots && { roots }) } };
}

/**
 * Returns a client of the node. The example believes what this node says about the chain, so name one that
 * you trust.
 */
export function readNode(): SuiGrpcClient {
  return new SuiGrpcClient({ network: read('SUI_NETWORK', String), baseUrl: readUrl('SUI_NODE_URL') });
}

/** Returns the contract's package and the config whose enclaves it accepts. */
export function readContract() {
  return { appPackage: readId('WEATHER_PACKAGE'), configId: readId('WEATHER_CONFIG') };
}

export function readSigner(): Ed25519Keypair {
  return read('SUI_PRIVATE_KEY', () => {
    try {
      return Ed25519Keypair.fromSecretKey(process.env['SUI_PRIVATE_KEY'] ?? '');
    } catch {
      // The error does not include the parser's message, which may quote the key.
      throw new Error('it must be an Ed25519 key in the form suiprivkey…');
    }
  });
}

/** Returns the services of a zkLogin login: see `sui-enclave/zklogin`. */
export function readLogin() {
  return {
    issuer: read('ISSUER', String),
    clientId: read('CLIENT_ID', String),
    saltUrl: readUrl('SALT_URL'),
    proverUrl: readUrl('PROVER_URL'),
    /** URL to which the provider redirects the user. */
    redirectUri: read('REDIRECT_URI', (value) => new URL(value)),
  };
}
