/**
 * `npm run bench:sealing`: measures the time that sealing adds to a request on the server, as a multiple of
 * an X25519 key agreement. A sealed call opens and reads a request with a token of 1000 bytes, and seals a
 * short answer. Calls and key agreements take turns. The command fails if a call costs more than `LIMIT`.
 */
import { diffieHellman, generateKeyPairSync } from 'node:crypto';
import { command, EXIT, runAsProcess } from '../../../src/cli/command.ts';
import { readCall, sealRequest } from '../../../src/library/sealing/request.ts';
import { sealAnswer } from '../../../src/library/sealing/response.ts';
import { SealingKey, sealAesGcm } from '../../../src/server/sealing/sealing_key.ts';

/** Maximum time of a sealed call, as a multiple of a key agreement. */
export const LIMIT = 3;
const TURNS = 300;
const CALLS = 20;

const key = SealingKey.create();
const body = { token: 'x'.repeat(1000) };
const { message } = await sealRequest(key.publicKey, { method: 'POST', path: '/get_salt', body });
const json = JSON.stringify({ salt: '1'.repeat(38) });
const keys = generateKeyPairSync('x25519');

const contenders = {
  agreement: async () => diffieHellman(keys),
  sealing: async () => {
    const { content, answer } = await key.open(message);
    readCall(content);
    return sealAnswer(answer, { status: 200, json }, 0, sealAesGcm);
  },
};
type Contender = keyof typeof contenders;

/** Measures the time of one call, in microseconds. */
async function time(call: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  for (let calls = 0; calls < CALLS; calls++) await call();
  return ((performance.now() - start) / CALLS) * 1000;
}

/**
 * Returns the time of a contender's fastest turn, in microseconds. On a shared machine, slower turns measure
 * other programs too.
 *
 * @param turns number of turns, each of 20 calls
 */
export async function measureSealing(turns = TURNS): Promise<Record<Contender, number>> {
  const best = { agreement: Number.POSITIVE_INFINITY, sealing: Number.POSITIVE_INFINITY };
  for (let turn = 0; turn < turns; turn++) {
    for (const name of Object.keys(contenders) as Contender[]) {
      best[name] = Math.min(best[name], await time(contenders[name]));
    }
  }
  return best;
}

export const main = command({
  name: 'bench_sealing',
  program: 'npm run bench:sealing --',
  purpose:
    'Measures the time that sealing adds to a request on the server, as a multiple of an X25519 key agreement.',
  arguments: {},
  options: {},
  notes: `exit codes: 0 done; 1 sealing takes over ${LIMIT} key agreements; 2 invalid command line`,
  async run(_arguments, { io }) {
    const { agreement, sealing } = await measureSealing();
    const ratio = sealing / agreement;
    io.log(`X25519 key agreement  ${agreement.toFixed(0).padStart(5)} µs`);
    io.log(`sealing               ${sealing.toFixed(0).padStart(5)} µs, ${ratio.toFixed(1)} key agreements`);
    const isTooSlow = ratio > LIMIT;
    if (isTooSlow) io.error(`sealing takes ${ratio.toFixed(1)} key agreements, over ${LIMIT}`);
    return {
      exit: isTooSlow ? EXIT.failed : EXIT.done,
      json: { unit: 'µs', limit: LIMIT, agreement, sealing },
    };
  },
});

if (import.meta.main) await runAsProcess(main);
