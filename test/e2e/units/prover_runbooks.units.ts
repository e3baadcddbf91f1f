/**
 * Walks through the runbooks of the prover: its real units, with a fake engine and a fake witness generator,
 * and the shipped configuration of HAProxy, if HAProxy is installed.
 */
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fakeGenerator } from '../../src/prover/backend/support.ts';
import { fakeWorker, LOADS, PROVES } from '../../src/prover/fake_worker.ts';
import { createSimulatedKey } from '../../src/prover/frontend/simulator.ts';
import { findObstacle, until } from './machine.ts';
import { ParentMachine, PROGRAM } from './parent_machine.ts';
import { installUnit, Walk } from './walk.ts';

const BACKEND = 'sui-enclave-prover-backend';
const FRONTEND = 'sui-enclave-prover-frontend';
const HAPROXY = '/usr/sbin/haproxy';
const FOLDER = '/var/lib/prover';
const ZKEY = `${FOLDER}/k.zkey`;
/** Ports of the front end and the backend, and of the metrics of both and of HAProxy. */
const PORTS = { frontend: 8181, backend: 8182, frontendFigures: 9113, backendFigures: 9114, haproxy: 8405 };

let machine: ParentMachine;
let walk: Walk;

/** Formats settings, one a line. */
const formatEnv = (env: object) =>
  Object.entries(env)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');

function installBackend(): void {
  const worker = fakeWorker(`${LOADS} ${PROVES}`);
  const script = readFileSync(worker, 'utf8').replace('#!/usr/bin/env node', `#!${PROGRAM[0]}`);
  machine.write(join(FOLDER, 'engine'), script, 0o755);
  machine.write(ZKEY, 'a key');
  cpSync(fakeGenerator(), machine.path(join(FOLDER, 'generator')), { recursive: true });
  machine.mustRun('chmod', '-R', 'a+rX', FOLDER);
  const env = {
    ZKEY,
    WITNESS_BINARIES: `${FOLDER}/generator`,
    PROVER_ENGINE: `${FOLDER}/engine`,
    ALLOW_INSECURE_DEV_KEY: 1,
    PORT: PORTS.backend,
    METRICS_PORT: PORTS.backendFigures,
  };
  machine.write('etc/sui-enclave/prover-backend.env', formatEnv(env));
  installUnit(machine, `deploy/systemd/${BACKEND}.service`);
}

/**
 * Writes the front end's settings.
 *
 * @param key settings of the verifying key. By default, it is mainnet's, whose proving key the backend lacks
 */
function writeFrontendSettings(key: object = {}): void {
  const env = {
    PROVER_URI: `http://127.0.0.1:${PORTS.backend}/input`,
    PROVER_PORT: PORTS.frontend,
    METRICS_PORT: PORTS.frontendFigures,
    ...key,
  };
  machine.write('etc/sui-enclave/prover-frontend.env', formatEnv(env));
}

/** Sends a request for a proof of a token that no issuer has signed. @returns the code of the answer */
function requestProof(): string {
  const numbers = { extendedEphemeralPublicKey: '5', maxEpoch: '1', jwtRandomness: '1', salt: '1' };
  const body = JSON.stringify({ jwt: 'a.b.c', ...numbers, keyClaimName: 'sub' });
  const options = `{ method: 'POST', headers: { 'content-type': 'application/json' }, body: '${body}' }`;
  const program = `fetch('http://127.0.0.1:${PORTS.frontend}/v1', ${options}).then((a) => a.json()).then((a) => console.log(a.code))`;
  return machine.run(PROGRAM[0], '-e', program).stdout.trim();
}

describe.skipIf(findObstacle() !== undefined)('the runbooks of the prover', () => {
  beforeAll(async () => {
    machine = new ParentMachine();
    const ports = {
      prover_backend: PORTS.backendFigures,
      prover_frontend: PORTS.frontendFigures,
      haproxy: PORTS.haproxy,
    };
    walk = new Walk(machine, ports, {});
    await machine.boot();
  });
  afterAll(() => machine.close());

  test('ProverBackendDown: restart the backend after the key is restored', async () => {
    installBackend();
    machine.mustRun('systemctl', 'start', BACKEND);
    await walk.awaitClear('ProverBackendDown');
    machine.mustRun('mv', ZKEY, `${ZKEY}.away`);
    machine.mustRun('systemctl', 'kill', '--kill-who=main', '--signal=KILL', BACKEND);
    await walk.awaitFiring('ProverBackendDown');
    await until('the log has the reason', () => /ZKEY/.test(walk.runBlock('ProverBackendDown', 0)));
    machine.mustRun('mv', `${ZKEY}.away`, ZKEY);
    walk.runBlock('ProverBackendDown', 1);
    await walk.awaitClear('ProverBackendDown');
  });

  test('ProverNotReady: start the front end that has ended', async () => {
    const { vkey } = createSimulatedKey(1n);
    machine.write(join(FOLDER, 'vkey.json'), JSON.stringify(vkey));
    writeFrontendSettings({ VERIFYING_KEY: `${FOLDER}/vkey.json`, ALLOW_INSECURE_DEV_KEY: 1 });
    installUnit(machine, `deploy/systemd/${FRONTEND}.service`);
    machine.mustRun('systemctl', 'start', FRONTEND);
    await walk.awaitClear('ProverNotReady');
    machine.mustRun('systemctl', 'stop', FRONTEND);
    expect(walk.isFiring('ProverNotReady')).toBe(true);
    expect(walk.runBlock('ProverNotReady', 0)).toMatch(/"msg":"listening"/);
    await walk.awaitClear('ProverNotReady');
  });

  test('ProverNotReady: start the backend that does not answer', async () => {
    machine.mustRun('systemctl', 'stop', BACKEND);
    await walk.awaitFiring('ProverNotReady');
    expect(machine.get(PORTS.frontend, 'readyz')).toMatch(/the backend does not answer/);
    walk.runBlock('ProverBackendDown', 1);
    await walk.awaitClear('ProverNotReady');
  });

  test('ProverNotReady, ProverRefusing: give the front end the key of the backend', async () => {
    const alerts = ['ProverNotReady', 'ProverRefusing'];
    const settings = readFileSync(machine.path('etc/sui-enclave/prover-frontend.env'), 'utf8');
    writeFrontendSettings();
    machine.mustRun('systemctl', 'restart', FRONTEND);
    await until('the front end runs', () => machine.get(PORTS.frontendFigures, 'metrics') !== '');
    await walk.awaitFiring('ProverNotReady');
    walk.isFiring('ProverRefusing');
    await until('the front end refuses requests', () => requestProof() === 'PROVER_WRONG_NETWORK');
    expect(alerts.map((alert) => walk.isFiring(alert))).toEqual([true, true]);
    expect(walk.runBlock('ProverRefusing', 0)).toMatch(/DEVELOPMENT KEY/);
    expect(machine.get(PORTS.frontend, 'readyz')).toMatch(/"code":"PROVER_WRONG_NETWORK"/);
    machine.write('etc/sui-enclave/prover-frontend.env', settings);
    walk.runBlock('ProverNotReady', 0);
    await walk.awaitClear('ProverNotReady');
    walk.isFiring('ProverRefusing');
    expect(requestProof()).toBe('PROVER_TOKEN');
    expect(alerts.map((alert) => walk.isFiring(alert))).toEqual([false, false]);
  });

  test('ProverEngineRestarts: find why the engine ended each time', async () => {
    walk.isFiring('ProverEngineRestarts');
    const restarts = () =>
      Number(/engine_restarts_total (\d+)/.exec(machine.get(PORTS.backendFigures, 'metrics'))?.[1]);
    for (let count = 1; count <= 3; count += 1) {
      machine.mustRun('pkill', '--signal', 'KILL', '--full', `${FOLDER}/engine`);
      await until('another engine runs', () => restarts() === count);
      await walk.awaitClear('ProverBackendDown');
    }
    expect(walk.isFiring('ProverEngineRestarts')).toBe(true);
    const log = walk.runBlock('ProverEngineRestarts', 0);
    expect(log.match(/"code":"PROVER_ENGINE".*the engine ended/g)).toHaveLength(3);
    expect(walk.isFiring('ProverEngineRestarts')).toBe(false);
  });

  test.skipIf(!existsSync(HAPROXY))('ProverNoBackend: start the backends behind HAProxy', async () => {
    const env = {
      BIND: '127.0.0.1:8183',
      BACKEND: '127.0.0.1',
      BACKEND_PORT: PORTS.backend,
      BACKENDS: 1,
      METRICS_PORT: PORTS.haproxy,
    };
    const set = Object.entries(env).map(([name, value]) => `--setenv=${name}=${value}`);
    const config = '/opt/sui-enclave/deploy/haproxy.cfg';
    machine.mustRun('systemd-run', '--quiet', '--unit=balancer', ...set, HAPROXY, '-db', '-f', config);
    await until('HAProxy has figures', () => machine.get(PORTS.haproxy, 'metrics') !== '');
    await walk.awaitClear('ProverNoBackend');
    machine.mustRun('systemctl', 'stop', BACKEND);
    await walk.awaitFiring('ProverNoBackend');
    walk.runBlock('ProverNoBackend', 0);
    await walk.awaitClear('ProverNoBackend');
  });
});
