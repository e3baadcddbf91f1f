/** Runs the tests' loopback node as a development service, with a faucet and a funded account. */
import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { certificatesFromPem } from 'sui-enclave/attestation';
import { modelChainId } from 'sui-enclave-cli/sui/network';
import { createFaucet } from 'sui-enclave-devnet/faucet';
import { RANDOM } from 'sui-enclave-devnet/ledger';
import { listen } from 'sui-enclave-devnet/listen';
import { LoopbackNode } from 'sui-enclave-devnet/node';
import { DevelopmentTrust } from 'sui-enclave-testing/development_trust';
import { type Account, developmentAccount } from './account.ts';
import { builtKeys, createSignatureCheck } from './signatures.ts';

/** Amount of the account in MIST: 1000 SUI. */
const FUNDS = 1_000_000_000_000n;

/** Time in milliseconds by which reads lag behind execution. */
const LAG_MS = 300;

export interface DevSuiOptions {
  /** Port of the node; 0 lets the system choose, as in `faucetPort`. */
  readonly port: number;
  readonly faucetPort: number;
  /** Folder of the emulated root and the development key. It ends in a slash, and need not exist. */
  readonly folder: URL;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Time in milliseconds by which reads lag behind execution. Default: 300, since full nodes lag too. */
  readonly lagMs?: number;
  /** The first 4 bytes of the chain's identifier, in hexadecimal. Default: random ones. */
  readonly chain?: string | undefined;
}

export interface DevSui {
  readonly node: LoopbackNode;
  readonly faucetUrl: string;
  readonly account: Account;
  /** Whether the node checks the Groth16 proof of a zkLogin signature, besides all other parts of it. */
  readonly checksProofs: boolean;
  /** Note for people about the accepted root, if it was created just now. */
  readonly note: string | undefined;
  close(): Promise<void>;
}

/** @throws ConfigError; SuiCommandError: SIGNER */
export async function startDevSui({
  port,
  faucetPort,
  folder,
  env,
  lagMs = LAG_MS,
  chain = randomBytes(4).toString('hex'),
}: DevSuiOptions): Promise<DevSui> {
  const account = developmentAccount(folder, env);
  const trust = DevelopmentTrust.load(folder, 'weather');
  const [root = new Uint8Array()] = certificatesFromPem(trust.nsm.rootPem());
  const node = await LoopbackNode.start(root, port);
  node.chainId = modelChainId(Buffer.from(chain, 'hex'));
  const faucet = createFaucet((address, mist) => node.ledger.give(address, mist));
  try {
    await listen(faucet, 'FAUCET_PORT', faucetPort);
  } catch (error) {
    node.close();
    throw error;
  }
  const keys = builtKeys();
  node.verify = createSignatureCheck(node, keys);
  node.lagMs = lagMs;
  // The node has nothing to protect, and a dapp under development may have any origin.
  node.servesPages = true;
  node.ledger.objects.set(RANDOM.id, RANDOM);
  node.ledger.give(account.address, FUNDS);
  return {
    node,
    faucetUrl: `http://127.0.0.1:${(faucet.address() as AddressInfo).port}`,
    account,
    checksProofs: keys.length > 0,
    note: trust.isNew ? trust.save() : undefined,
    async close() {
      node.close();
      faucet.closeAllConnections();
      faucet.close();
    },
  };
}
