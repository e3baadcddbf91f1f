/** Opens sessions from Sui's vectors of a real Google login, with a node and a sponsor. */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Transaction } from '@mysten/sui/transactions';
import { fromHex } from '@mysten/sui/utils';
import { onTestFinished, vi } from 'vitest';
import { chooseVerifier, LoopbackNode } from '../../../../src/devnet/node.ts';
import { verifyZkLogin } from '../../../../src/devnet/zklogin.ts';
import {
  createEpochSource,
  createMemoryStore,
  type Login,
  resumeLogin,
  type SessionStore,
  type SponsoredTransaction,
  type SponsorRequest,
  type ZkLoginSession,
} from '../../../../src/library/zklogin/index.ts';
import { base64url, vector } from './support.ts';

export const [production, devnet] = vector('proofs');
export const { common } = vector('jwts');
export const { partialInputs: proof, salt, address, iss, aud, keyClaimValue: sub, maxEpoch } = production;
export const key = Ed25519Keypair.fromSecretKey(fromHex(common.ephemeralSecretHex));
export const saltBytes = fromHex(BigInt(salt).toString(16).padStart(32, '0'));
export const legacyAddress = false;

/**
 * Creates a login with the vector's key, which needs only a salt and a proof. By default, the token's payload
 * begins like the payload of Google's token.
 */
export function createLogin(payload: Record<string, unknown> | string = { iss, aud, sub }): {
  storage: SessionStore;
  jwt: string;
  login: Login;
} {
  const storage = createMemoryStore();
  const jwt = `${proof.headerBase64}.${base64url(payload)}.c2ln`;
  const login = {
    stage: 'complete',
    provider: { name: 'Google', issuer: iss, token: null },
    clientId: aud,
    nonce: common.nonce,
    randomness: common.jwtRandomness,
    maxEpoch,
    secretKey: key.getSecretKey(),
    jwt,
  };
  storage.set('sui-enclave/zklogin/login', JSON.stringify(login));
  return { storage, jwt, login: resumeLogin({ storage }) };
}

export function openSession(currentEpoch = () => 8): { storage: SessionStore; session: ZkLoginSession } {
  const { storage, login } = createLogin();
  return { storage, session: login.open({ salt, proof, legacyAddress, currentEpoch }) };
}

/** Builds the bytes of a transaction, which does nothing by default. */
export async function buildTransaction(sender = address, tx = new Transaction()): Promise<Uint8Array> {
  tx.setSender(sender);
  tx.setGasPrice(1000);
  tx.setGasBudget(5_000_000);
  tx.setGasPayment([
    { objectId: `0x${'1'.repeat(64)}`, version: '1', digest: '11111111111111111111111111111111' },
  ]);
  return await tx.build();
}

/** Builds the bytes of a transaction that transfers the gas coin, as a hostile sponsor might do. */
export async function buildSpending(): Promise<Uint8Array> {
  const tx = new Transaction();
  tx.transferObjects([tx.gas], `0x${'9'.repeat(64)}`);
  tx.setGasOwner(`0x${'2'.repeat(64)}`);
  return await buildTransaction(address, tx);
}

export async function setUp(
  epoch: bigint,
): Promise<{ node: LoopbackNode; client: SuiGrpcClient; session: ZkLoginSession }> {
  const node = await LoopbackNode.start(new Uint8Array());
  onTestFinished(() => node.close());
  node.epoch = epoch;
  node.verify = verifyZkLogin;
  node.ledger.give(address, 10_000_000_000n);
  const client = new SuiGrpcClient({ network: 'localnet', baseUrl: node.url });
  const { login } = createLogin();
  return {
    node,
    client,
    session: login.open({ salt, proof, legacyAddress, currentEpoch: createEpochSource(client) }),
  };
}

/** Opens a session whose address has no SUI, and creates a sponsor with SUI. */
export async function setUpSponsor() {
  const fixture = await setUp(8n);
  const { node, client } = fixture;
  const sponsor = new Ed25519Keypair();
  for (const { object } of node.ledger.coins(address)) node.ledger.objects.delete(object.id);
  node.ledger.give(sponsor.toSuiAddress(), 10_000_000_000n);
  node.verify = async (data, signature, signer, scope) =>
    signer === address
      ? await verifyZkLogin.call(node, data, signature, signer, scope)
      : await chooseVerifier(scope)(data, signature, { address: signer });
  /** Fake of a sponsor's service that pays for any transaction. */
  const service = vi.fn(async ({ kind, sender }: SponsorRequest): Promise<SponsoredTransaction> => {
    const tx = Transaction.fromKind(kind);
    tx.setSender(sender);
    tx.setGasOwner(sponsor.toSuiAddress());
    const transaction = await tx.build({ client });
    const { signature } = await sponsor.signTransaction(transaction);
    return { transaction, signature };
  });
  return { ...fixture, sponsor, service };
}
