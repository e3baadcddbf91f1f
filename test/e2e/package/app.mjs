// Uses the installed package from plain JavaScript. Node does not strip types from files below node_modules.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { parsePcrs, predictRegistration, verifyAttestation } from 'sui-enclave/attestation';
import { EnclaveClient } from 'sui-enclave/client';
import { useEnclave } from 'sui-enclave/react';
import { enclaveAddress, signedArguments } from 'sui-enclave/sui';
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
// In Node, the library does not decompress answers.
const server = createServer((_, response) =>
  response.writeHead(200, { 'content-encoding': 'gzip' }).end('x'),
);
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const client = new EnclaveClient(`http://127.0.0.1:${server.address().port}`, { policy });
const encoded = await client.attest().catch(({ code, reason }) => [code, reason]);
server.close();
const findings = {
  module: document.moduleId,
  accepted,
  refused,
  encoded,
  client: typeof EnclaveClient,
  sui: [typeof enclaveAddress, typeof signedArguments],
  wallet: [typeof registerZkLoginWallet, typeof answerLogin],
  zklogin: [typeof beginLogin, typeof completeLogin],
  react: typeof useEnclave,
};
process.stdout.write(JSON.stringify(findings));
