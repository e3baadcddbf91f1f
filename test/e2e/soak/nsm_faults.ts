/** Faults of the NSM, while callers attest the server. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { AttestationError } from '../../../src/library/attestation/index.ts';
import { add, formatCounts, readCode } from './answers.ts';
import type { NsmMode } from './weather.ts';
import { RefusedError, type World } from './world.ts';

/** Time of a fault, and callers at once. */
const FAULT_MS = 1000;
const CALLERS = 4;
const PAUSE_MS = 200;

/** Results that callers must get, by the state of the NSM. */
const EXPECTED: readonly (readonly [NsmMode, RegExp])[] = [
  ['slow', /^(?:ATTESTED|NSM_BUSY)$/],
  ['dead', /^NSM_IO$/],
  ['lies', /^NSM_PROTOCOL$/],
  // The server can't know the root. The callers refuse the document.
  ['foreign', /^refused by the caller: /],
];

export async function tryNsmFaults(world: World): Promise<void> {
  for (const [mode, expected] of EXPECTED) {
    const counts = new Map<string, number>();
    world.tell({ nsm: mode });
    let retryAfter = 0;
    const end = performance.now() + FAULT_MS;
    const call = async () => {
      while (performance.now() < end) {
        const { result, retryAfterSeconds } = await attest(world);
        add(counts, result);
        retryAfter = Math.max(retryAfter, retryAfterSeconds);
        await sleep(PAUSE_MS);
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, call));
    world.tell({ nsm: 'well' });
    const isExpected = [...counts.keys()].every((result) => expected.test(result));
    const name = `NSM, ${mode}`;
    world.findings.add(`${name}: each answer has a code`, isExpected, formatCounts(counts), expected.source);
    await sleep(retryAfter * 1000);
    const { result } = await attest(world);
    world.findings.add(`${name}: the first attempt after it`, result === 'ATTESTED', result, 'ATTESTED');
  }
}

async function attest(world: World): Promise<{ result: string; retryAfterSeconds: number }> {
  try {
    await world.attest(randomBytes(32));
    return { result: 'ATTESTED', retryAfterSeconds: 0 };
  } catch (error) {
    if (error instanceof AttestationError) {
      return { result: `refused by the caller: ${error.code}`, retryAfterSeconds: 0 };
    }
    if (!(error instanceof RefusedError)) {
      return { result: `no answer: ${(error as NodeJS.ErrnoException).code}`, retryAfterSeconds: 0 };
    }
    const code = readCode(error.text);
    world.judge.count(code);
    return { result: code, retryAfterSeconds: error.retryAfterSeconds };
  }
}
