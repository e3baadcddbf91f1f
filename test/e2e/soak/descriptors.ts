/** Tries a server near its limit on file descriptors, and beyond it, while callers leave connections open. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../../../scripts/check/bench/ports.ts';
import { add, ask, formatCounts, readCode } from './answers.ts';
import type { Findings } from './finding.ts';
import { Part } from './processes.ts';

/**
 * Limit on the open files of a server, which reserves 64 of them, and half of the remainder for its upstream.
 */
const LIMIT = 256;
const IDLE = 300;
const REQUESTS = 40;
const PAUSE_MS = 25;

/** Tries a server with few descriptors, to which callers open more idle connections than it may have. */
export async function tryDescriptors(findings: Findings): Promise<void> {
  const upstream = await Part.start('./upstream.ts', { PORT: String(await findFreePort()) });
  const server = await Part.start('./weather.ts', { FAKE: upstream.origin }, LIMIT);
  try {
    const sockets = await openConnections(server.origin, IDLE);
    const codes = await askOften(server.origin);
    const used = server.descriptors;
    const isServed = codes.size === 1 && codes.has('200') && used <= LIMIT && !server.isEnded;
    const measured = `${used} of ${LIMIT} used, with ${IDLE} idle connections; answers: ${formatCounts(codes)}`;
    findings.add(
      'descriptors near the limit: callers are served',
      isServed,
      measured,
      'each is answered by 200',
    );
    // The system now refuses descriptors on which the server counts.
    setLimit(server.child.pid, server.descriptors);
    const refused = await askOften(server.origin);
    setLimit(server.child.pid, LIMIT);
    for (const socket of sockets) socket.destroy();
    await sleep(100);
    const first = formatCounts(await askOnce(server.origin));
    const hasRecovered = first === '1 200' && !refused.has('UNTYPED') && !server.isEnded;
    const name = 'descriptors run out: the first attempt afterwards';
    findings.add(name, hasRecovered, `${first}, after ${formatCounts(refused)}`, '1 200');
  } finally {
    for (const part of [server, upstream]) await part.kill();
  }
}

async function openConnections(origin: string, count: number): Promise<Socket[]> {
  const { hostname, port } = new URL(origin);
  const sockets = Array.from({ length: count }, () => connect(Number(port), hostname).on('error', () => {}));
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  return sockets;
}

let places = 0;

/**
 * Sends a request, and counts its outcome: `200`, the code of the refusal, or the code of the connection's
 * error.
 */
async function askOnce(origin: string, counts = new Map<string, number>()): Promise<Map<string, number>> {
  places += 1;
  const body = { payload: { location: `port ${places}` } };
  const outcome = await ask(`${origin}/process_data`, body).then(
    ({ status, text }) => (status === 200 ? '200' : readCode(text)),
    ({ code }: NodeJS.ErrnoException) => String(code),
  );
  add(counts, outcome);
  return counts;
}

/** Sends requests at a steady pace, each on a connection of its own, and counts their outcomes. */
async function askOften(origin: string): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  const answers = [];
  for (let request = 0; request < REQUESTS; request += 1) {
    answers.push(askOnce(origin, counts));
    await sleep(PAUSE_MS);
  }
  await Promise.all(answers);
  return counts;
}

function setLimit(pid: number | undefined, soft: number): void {
  const { status } = spawnSync('prlimit', ['--pid', String(pid), `--nofile=${soft}:`]);
  if (status !== 0) throw new Error('prlimit failed: install util-linux');
}
