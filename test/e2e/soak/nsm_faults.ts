/** Tries faults of the NSM while callers attest the server. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { AttestationError } from '../../../src/library/attestation/index.ts';
import { add, formatCounts, readCode } from './answers.ts';
import type { NsmMode } from './weather.ts';
import { RefusedError, type World } from './world.ts';

/** Duration of a fault, in milliseconds. */
const FAULT_MS = 1000;
/** Callers that attest at the same time. */
const CALLERS = 4;
const PAUSE_MS = 200;

/** Patterns of the outcomes that callers may get, by the state of the NSM. */
const EXPECTED: readonly (readonly [NsmMode, RegExp])[] = [
  ['slow', /^(?:ATTESTED|NSM_BUSY)$/],
  ['dead', /^NSM_IO$/],
  ['lies', /^NSM_PROTOCOL$/],
  // The server can't check the root, so it answers. The callers refuse the document.
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
        const { outcome, retryAfterSeconds } = await attest(world);
        add(counts, outcome);
        retryAfter = Math.max(retryAfter, retryAfterSeconds);
        await sleep(PAUSE_MS);
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, call));
    world.tell({ nsm: 'well' });
    const isExpected = [...counts.keys()].every((outcome) => expected.test(outcome));
    const name = `NSM, ${mode}`;
    world.findings.add(`${name}: each answer has a code`, isExpected, formatCounts(counts), expected.source);
    await sleep(retryAfter * 1000);
    const { outcome } = await attest(world);
    world.findings.add(
      `${name}: the first attempt after the fault`,
      outcome === 'ATTESTED',
      outcome,
      'ATTESTED',
    );
  }
}

async function attest(world: World): Promise<{ outcome: string; retryAfterSeconds: number }> {
  try {
    await world.attest(randomBytes(32));
    return { outcome: 'ATTESTED', retryAfterSeconds: 0 };
  } catch (error) {
    if (error instanceof AttestationError) {
      return { outcome: `refused by the caller: ${error.code}`, retryAfterSeconds: 0 };
    }
    if (!(error instanceof RefusedError)) {
      return { outcome: `no answer: ${(error as NodeJS.ErrnoException).code}`, retryAfterSeconds: 0 };
    }
    const code = readCode(error.text);
    world.judge.count(code);
    return { outcome: code, retryAfterSeconds: error.retryAfterSeconds };
  }
}
