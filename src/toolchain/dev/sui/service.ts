/** The loopback node of the tests as a development service, with a faucet and a funded account. */
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
import { builtKeys, signatureChecks } from './signatures.ts';

/** 1000 SUI, in MIST. */
const FUNDS = 1_000_000_000_000n;

/** Lag of reads in milliseconds. */
const LAG_MS = 300;

export interface DevSuiOptions {
  /** Port of node and faucet; 0 lets the system choose. */
  readonly port: number;
  readonly faucetPort: number;
  /** The folder of the emulated root and of the development key; ends in a slash, and need not exist. */
  readonly folder: URL;
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * Lag of reads behind execution, in milliseconds. Default: 300, as full nodes lag at times.
   */
  readonly lagMs?: number;
  /** The first 4 bytes of the chain's identifier, in hexadecimal. Default: random ones. */
  readonly chain?: string | undefined;
}

export interface DevSui {
  readonly node: LoopbackNode;
  readonly faucetUrl: string;
  readonly account: Account;
  /** Whether it checks the Groth16 proof of a zkLogin signature, besides everything else of it. */
  readonly checksProofs: boolean;
  /** Note for people about the accepted root, if it was just made. */
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
  node.verify = signatureChecks(node, keys);
  node.lagMs = lagMs;
  // Nothing here is worth protecting, and a dapp under development may have any origin.
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
