// Plain JavaScript that uses the installed package: Node strips no types under node_modules.
import { readFileSync } from 'node:fs';
import { parsePcrs, predictRegistration, verifyAttestation } from 'sui-enclave/attestation';
import { EnclaveClient } from 'sui-enclave/client';
import { useEnclave } from 'sui-enclave/react';
import { enclaveAddress, updateWeather } from 'sui-enclave/sui';
import { registerZkLoginWallet } from 'sui-enclave/wallet';
import { answerLogin } from 'sui-enclave/wallet/redirect';
import { beginLogin, completeLogin } from 'sui-enclave/zklogin';

const [, , vector, pcrs] = process.argv;
const bytes = Uint8Array.from(Buffer.from(readFileSync(vector, 'utf8').trim(), 'hex'));
const now = Date.parse('2025-04-15T03:00:00Z');
const policy = { images: [parsePcrs(readFileSync(pcrs, 'utf8'))] };
const { document } = await verifyAttestation(bytes, { now, policy });
const { accepted } = await predictRegistration(bytes, now);
const refused = await verifyAttestation(bytes, { now: Date.now(), policy }).catch((error) => error.code);
const findings = {
  module: document.moduleId,
  accepted,
  refused,
  client: typeof EnclaveClient,
  sui: [typeof enclaveAddress, typeof updateWeather],
  wallet: [typeof registerZkLoginWallet, typeof answerLogin],
  zklogin: [typeof beginLogin, typeof completeLogin],
  react: typeof useEnclave,
};
process.stdout.write(JSON.stringify(findings));
