/**
 * `npm run bench:sealing`: what sealing adds to a request on the server, in X25519 key agreements: to
 * open a request with a token of 1000 bytes, to read it, and to seal a short answer. Measured in turns; fails
 * over `LIMIT`.
 */
import { diffieHellman, generateKeyPairSync } from 'node:crypto';
import { readCall, sealRequest } from '../../../src/sealing/request.ts';
import { sealAnswer } from '../../../src/sealing/response.ts';
import { SealingKey, sealAesGcm } from '../../../src/server/sealing_key.ts';
import { command, EXIT, runAsProcess } from '../../command.ts';

const LIMIT = 3;
const TURNS = 300;
const CALLS = 20;

type Calls = Readonly<Record<'agreement' | 'sealing', () => Promise<unknown>>>;

const USAGE = `usage: npm run bench:sealing

exit codes: 0 done; 1 sealing takes over ${LIMIT} key agreements`;

export const main = command({
  usage: USAGE,
  options: {},
  async run() {
    const { agreement, sealing } = await fastest(await prepare());
    const ratio = sealing / agreement;
    const line = (name: string, us: number) => `${name.padEnd(20)} ${us.toFixed(0).padStart(5)} µs`;
    const text = `${line('X25519 key agreement', agreement)}
${line('sealing', sealing)}, ${ratio.toFixed(1)} key agreements (limit ${LIMIT})`;
    return {
      exit: ratio > LIMIT ? EXIT.failed : EXIT.done,
      json: { agreementUs: agreement, sealingUs: sealing, ratio, limit: LIMIT },
      text,
    };
  },
});

async function prepare(): Promise<Calls> {
  const key = SealingKey.create();
  const body = { token: 'x'.repeat(1000) };
  const { message } = await sealRequest(key.publicKey, { method: 'POST', path: '/get_salt', body });
  const json = JSON.stringify({ salt: '1'.repeat(38) });
  const keys = generateKeyPairSync('x25519');
  return {
    agreement: async () => diffieHellman(keys),
    sealing: async () => {
      const { content, answer } = await key.open(message);
      readCall(content);
      return sealAnswer(answer, { status: 200, json }, 0, sealAesGcm);
    },
  };
}

/** The microseconds of each in its fastest turn: on a shared machine, the others measure who else runs. */
async function fastest(calls: Calls): Promise<Record<keyof Calls, number>> {
  const best = { agreement: Number.POSITIVE_INFINITY, sealing: Number.POSITIVE_INFINITY };
  for (let turn = 0; turn < TURNS; turn++) {
    for (const name of ['agreement', 'sealing'] as const) {
      best[name] = Math.min(best[name], await time(calls[name]));
    }
  }
  return best;
}

/** Of one call, in microseconds. */
async function time(call: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  for (let calls = 0; calls < CALLS; calls++) await call();
  return ((performance.now() - start) / CALLS) * 1000;
}

if (import.meta.main) await runAsProcess(main);
