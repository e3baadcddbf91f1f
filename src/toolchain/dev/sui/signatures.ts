/**
 * Checks the signatures that `make dev-sui` accepts: signatures by keys, and zkLogin signatures, whose proofs
 * it checks if the development keys have been built.
 */
import { readFileSync } from 'node:fs';
import { parseSerializedSignature } from '@mysten/sui/cryptography';
import { PROVIDERS } from 'sui-enclave/zklogin';
import type { LoopbackNode } from 'sui-enclave-devnet/node';
import {
  createKeyFetcher,
  type ProofTrust,
  verifyZkLogin,
  zkLoginVerifier,
} from 'sui-enclave-devnet/zklogin';
import { readVerifyingKey, type VerifyingKey } from 'sui-enclave-prover/verify';
import { isLoopbackOrigin } from 'sui-enclave-testing/loopback';
import { builtProver } from '../../prover/artifacts.ts';

type Verify = LoopbackNode['verify'];

const PROVIDERS_KEYS = Object.fromEntries(
  Object.values(PROVIDERS).map(({ issuer, jwksUrl }) => [issuer, jwksUrl]),
);

/**
 * Fetches keys of known providers, and of issuers on this machine, such as those of `make prover` and `make
 * dev-wallet`.
 */
const fetchKey: ProofTrust['fetchKey'] = (issuer, kid) => {
  return createKeyFetcher(isLoopbackOrigin(issuer) ? { [issuer]: `${issuer}/jwks` } : PROVIDERS_KEYS)(
    issuer,
    kid,
  );
};

/** Returns the verifying keys for zkLogin's circuit that `make prover` has built. */
export function builtKeys(): VerifyingKey[] {
  return (['small', 'full'] as const).flatMap((size) => {
    const artifacts = builtProver(size);
    if (artifacts === undefined) return [];
    return [readVerifyingKey(JSON.parse(readFileSync(artifacts.verifyingKey, 'utf8')))];
  });
}

/**
 * @param keys verifying keys. Without any, the node checks all of a zkLogin signature except its proof
 * @returns the function `verify` of this node
 */
export function createSignatureCheck(
  node: LoopbackNode,
  keys: readonly VerifyingKey[],
  issuers = fetchKey,
): Verify {
  const { verify: verifyByKey } = node;
  const verifiers = keys.map((verifyingKey) => zkLoginVerifier({ verifyingKey, fetchKey: issuers }));
  const zkLoginChecks = keys.length === 0 ? [verifyZkLogin] : verifiers;
  return async (...signed) => {
    const [, signature] = signed;
    if (parseSerializedSignature(signature).signatureScheme !== 'ZkLogin') {
      await verifyByKey(...signed);
      return;
    }
    // A proof fits one size of the circuit, but does not say which, so all sizes are tried.
    const checks = zkLoginChecks.map((check) => check.call(node, ...signed));
    await Promise.any(checks).catch(({ errors: [first] }: AggregateError) => {
      throw first;
    });
  };
}
