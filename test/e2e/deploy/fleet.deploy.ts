/**
 * Runs Debian's HAProxy in front of two emulated enclaves. It forwards 1,000 calls, while one enclave is
 * drained and the other is killed.
 */

import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bcs } from '@mysten/bcs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findFreePort } from '../../../scripts/check/bench/ports.ts';
import {
  certificatesFromPem,
  EnclaveClient,
  mayHaveExecuted,
  parsePcrs,
  signedType,
  u64,
} from '../../../src/library/client/index.ts';
import { DevelopmentTrust } from '../../../src/testing/development_trust.ts';
import { HAPROXY, isInstalled, type Program, start, stop, until } from './setup.ts';

const ENCLAVE = fileURLToPath(new URL('enclave.ts', import.meta.url));
const Counted = signedType(7, bcs.struct('Counted', { id: u64 }));
const CALLS = 1000;
const CONCURRENCY = 16;

/**
 * Formats the configuration. HAProxy uses the servers in turn, and sends a request again only if it could not
 * connect (its default).
 */
const formatConfig = (port: number, servers: readonly number[]) => `
defaults
  mode http
  balance roundrobin
  option redispatch 1
  retries 3
  timeout connect 1s
  timeout client 20s
  timeout server 20s
  option httpchk GET /livez
listen enclaves
  bind 127.0.0.1:${port}
${servers.map((port) => `  server enclave${port} 127.0.0.1:${port} check inter 200ms\n`).join('')}`;

const folder = mkdtempSync(join(tmpdir(), 'fleet-'));
const root = pathToFileURL(`${folder}/`);
/** Processes of all enclaves that were ever started, with their output. */
const enclaves: Program[] = [];
let proxy: Program;
let url: string;
let ports: [number, number];
let options: ConstructorParameters<typeof EnclaveClient>[1];

async function launch(port: number): Promise<Program> {
  const enclave = start(process.execPath, [ENCLAVE, root.href, String(port)], {});
  enclaves.push(enclave);
  await until('an enclave listens', () => {
    if (enclave.process.exitCode !== null) throw new Error(enclave.output());
    return enclave.output().includes('listening');
  });
  return enclave;
}

/** Returns the ids of the calls that an enclave has executed so far. */
const listExecuted = ({ output }: Program) =>
  [...output().matchAll(/^executed (\d+)$/gm)].map(([, id]) => Number(id));

/** Returns how often all enclaves together have executed the call of each id. */
function countExecutions(): Map<number, number> {
  const counts = new Map<number, number>();
  for (const id of enclaves.flatMap(listExecuted)) counts.set(id, (counts.get(id) ?? 0) + 1);
  return counts;
}

interface Outcome {
  readonly id: number;
  readonly kind: string;
  readonly idempotent: boolean;
  readonly error: unknown;
  readonly signer: string;
}

/**
 * Returns the kind of a call. Each server gets calls of every kind, since the kinds alternate at another
 * rate.
 */
const chooseKind = (id: number) => KINDS[(id + Math.floor(id / 4)) % 4] as string;
const KINDS = ['plain, idempotent', 'plain, once', 'sealed, idempotent', 'sealed, once'];

/** Makes all calls, of each kind in turn, and calls `beforeCall` before each. */
async function callAll(outcomes: Outcome[], beforeCall: (id: number) => void): Promise<void> {
  const clients = [new EnclaveClient(url, options), new EnclaveClient(url, { ...options, sealed: true })];
  let next = 0;
  const work = async () => {
    while (next < CALLS) {
      const id = next++;
      beforeCall(id);
      const kind = chooseKind(id);
      const [client, idempotent] = [clients[kind.startsWith('sealed') ? 1 : 0], kind.endsWith('idempotent')];
      // An enclave takes no sealed request to /count_once, which a host could repeat.
      const path = kind === 'plain, once' ? '/count_once' : '/count';
      const call = (client as EnclaveClient).call(path, { id }, Counted, { expect: { id }, idempotent });
      const [error, signer] = await call.then(
        ({ publicKey }) => [null, Buffer.from(publicKey).toString('hex')] as const,
        (error: unknown) => [error, ''] as const,
      );
      outcomes.push({ id, kind, idempotent, error, signer });
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
}

describe.skipIf(!isInstalled)(isInstalled ? 'HAProxy' : `HAProxy (skipped: no ${HAPROXY})`, () => {
  beforeAll(async () => {
    const trust = DevelopmentTrust.load(root, 'weather');
    trust.save();
    options = {
      policy: { images: [parsePcrs(trust.nsm.pcrsFile())] },
      roots: certificatesFromPem(trust.nsm.rootPem()),
    };
    ports = [await findFreePort(), await findFreePort()];
    const port = await findFreePort();
    url = `http://127.0.0.1:${port}`;
    writeFileSync(join(folder, 'haproxy.cfg'), formatConfig(port, ports));
    await Promise.all(ports.map(launch));
    proxy = start(HAPROXY, ['-db', '-f', join(folder, 'haproxy.cfg')], {});
    await until('HAProxy answers', async () => (await fetch(url).catch(() => null))?.ok === true);
  });
  afterAll(async () => {
    await Promise.all([...enclaves, proxy].map((program) => stop(program)));
    rmSync(folder, { recursive: true });
  });

  test('fails no idempotent call and runs no other call twice if one enclave is drained and the other killed', async () => {
    const [drained, killed] = enclaves as [Program, Program];
    const restarts: Promise<unknown>[] = [];
    const outcomes: Outcome[] = [];
    let isBack = false;
    const drain = async () => {
      await stop(drained, 'SIGTERM');
      await launch(ports[0]);
      isBack = true;
    };
    const kill = async () => {
      // The enclave is killed while it executes a call that must not be sent again.
      const isUnderWay = (id: number) =>
        chooseKind(id).endsWith('once') && !outcomes.some((outcome) => outcome.id === id);
      while (!listExecuted(killed).slice(-CONCURRENCY).some(isUnderWay)) {
        await once(killed.process.stdout as Readable, 'data');
      }
      await stop(killed, 'SIGKILL');
      await launch(ports[1]);
    };
    await callAll(outcomes, (call) => {
      if (call === 150) restarts.push(drain());
      if (call === 600) restarts.push(kill());
      if (call === 600) expect(isBack).toBe(true);
    });
    await Promise.all(restarts);

    const counts = countExecutions();
    const failed = outcomes.filter(({ error }) => error !== null);
    expect(failed.filter(({ idempotent }) => idempotent)).toEqual([]);
    for (const { id, error } of failed) {
      // An error says either that the call may have been executed, or that it certainly was not.
      if (!mayHaveExecuted(error)) expect([error, counts.get(id)]).toEqual([error, undefined]);
    }
    for (const { id, idempotent, error } of outcomes) {
      if (error === null) expect(counts.get(id)).toBeGreaterThanOrEqual(1);
      if (!idempotent) expect(counts.get(id) ?? 0).toBeLessThanOrEqual(1);
    }
    // The faults hit some calls, but few. The enclaves' output shows that at least one failed call was
    // executed.
    expect(outcomes).toHaveLength(CALLS);
    expect(failed.some(({ id }) => counts.get(id) === 1)).toBe(true);
    expect(failed.length).toBeLessThan(4 * CONCURRENCY);
    const signers = new Set(outcomes.map(({ signer }) => signer).filter((signer) => signer !== ''));
    expect(signers.size).toBeGreaterThanOrEqual(3);
  });
});
