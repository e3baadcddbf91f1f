/**
 * `npm run inputs`: writes the circuit's input for each real token of test/vectors to one file. With it,
 * anyone can compare the public inputs with the ones that the code of Sui's validators computes.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { command, runAsProcess } from '../../src/cli/command.ts';
import { path } from '../../src/cli/values.ts';
import { buildInput } from '../../src/prover/input.ts';
import { PROFILES } from '../../src/prover/profile.ts';

const VECTORS = new URL('../../test/vectors/zklogin-jwts.json', import.meta.url);
const SALT = '248191903847969014646285995941615069143';

export const main = command({
  name: 'inputs',
  program: 'npm run inputs --',
  purpose: `Writes the input of zkLogin's circuit for each real token of test/vectors, as prove --input-only makes it, with the
request, the issuer's key, the public input and the address seed.`,
  arguments: {},
  options: {
    out: { value: '<file>', help: 'the file to write', schema: path, default: 'out/zklogin-inputs.json' },
  },
  run({ options: { out } }) {
    const { common, jwts } = JSON.parse(readFileSync(VECTORS, 'utf8'));
    const ephemeral = Ed25519Keypair.fromSecretKey(Buffer.from(common.ephemeralSecretHex, 'hex'));
    const publicKey = Buffer.from(ephemeral.getPublicKey().toSuiBytes());
    const inputs = jwts.map(({ provider, jwt, n }: Record<'provider' | 'jwt' | 'n', string>) => {
      const request = {
        jwt,
        extendedEphemeralPublicKey: String(BigInt(`0x${publicKey.toString('hex')}`)),
        maxEpoch: common.maxEpoch,
        jwtRandomness: common.jwtRandomness,
        salt: SALT,
        keyClaimName: 'sub',
      };
      const key = { kty: 'RSA', n, e: 'AQAB' } as const;
      const { circuit, publicInput, addressSeed } = buildInput(request, key, PROFILES.full);
      return { provider, request, modulus: n, publicInput, addressSeed, input: circuit };
    });
    mkdirSync(dirname(out), { recursive: true });
    const toJson = (_name: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);
    writeFileSync(out, `${JSON.stringify(inputs, toJson, 2)}\n`);
    return { json: { file: out, tokens: inputs.length }, text: `${out}: ${inputs.length} tokens` };
  },
});

if (import.meta.main) await runAsProcess(main);
