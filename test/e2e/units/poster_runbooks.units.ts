/**
 * Walks through the runbooks of the poster, against a model of a Sui node and enclaves of the weather
 * application.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ChainMachine, GAS_BUDGET, type Service, url } from './chain_machine.ts';
import { findObstacle, until } from './machine.ts';
import { Walk } from './walk.ts';

const POSTER: Service = {
  unit: 'src/cli/poster/sui-enclave-post.service',
  name: 'poster',
  keystore: 'poster.keystore',
  metricsPort: 9113,
};
const UNIT = 'sui-enclave-post.service';
const [ONE, TWO] = [3101, 3102] as const;

let machine: ChainMachine;
let walk: Walk;

/** Writes the poster's file. The poster reads it at its start. */
function writePosterFile(ports: readonly number[], changes: object = {}): void {
  machine.writeServiceFile(POSTER, ports, { ...machine.facts.poster, ...changes });
}

const restartPoster = () => machine.mustRun('systemctl', 'restart', UNIT);
/** Returns the number of values that the poster has written. */
const countPosted = () => machine.readOutput(UNIT).match(/^posted: /gm)?.length ?? 0;

/**
 * Waits until the runbook's first command prints this text. On a busy machine, other alerts may come first.
 */
const awaitInLog = (alert: string, text: string) =>
  until(`the log has "${text}"`, () => walk.runBlock(alert, 0).includes(text));

/** Waits until the poster has written a new reading, and then until the alert has cleared. */
async function awaitClear(alert: string): Promise<void> {
  const time = machine.tell('renew_reading');
  const line = new RegExp(`^posted: .*the value of ${time} `, 'm');
  await until('the poster writes', () => line.test(machine.readOutput(UNIT)));
  await walk.awaitClear(alert);
}

describe.skipIf(findObstacle() !== undefined)('the runbooks of the poster', () => {
  beforeAll(async () => {
    machine = new ChainMachine();
    await machine.bootWorld();
    walk = new Walk(
      machine,
      { poster: POSTER.metricsPort },
      { NETWORK: machine.formatConfigOptions(), URL: url(ONE) },
      machine.adminVariables,
    );
    machine.installService(POSTER, machine.facts.posterKey);
    for (const port of [ONE, TWO]) {
      machine.tell(`start?port=${port}`);
      machine.tell(`register?port=${port}`);
    }
  });
  afterAll(() => machine.close());

  test('PosterAlert: send SUI to a poster without a coin', async () => {
    writePosterFile([ONE]);
    machine.mustRun('systemctl', 'start', UNIT);
    await walk.awaitFiring('PosterAlert');
    await awaitInLog('PosterAlert', 'alert NO_GAS_COIN ');
    machine.tell('give_poster');
    await awaitClear('PosterAlert');
  });

  test('PosterAlert: name another node in place of one that does not answer', async () => {
    writePosterFile([ONE], { node: url(9) });
    restartPoster();
    await walk.awaitFiring('PosterAlert');
    await awaitInLog('PosterAlert', 'alert NODE_UNUSABLE 127.0.0.1:9: ');
    writePosterFile([ONE]);
    walk.runBlock('PosterAlert', 2);
    await awaitClear('PosterAlert');
  });

  test('PosterAlert: register the key of an enclave that contracts do not accept', async () => {
    machine.tell(`start?port=${ONE}`);
    await walk.awaitFiring('PosterAlert');
    await awaitInLog('PosterAlert', `alert VALUE_REFUSED ${url(ONE)}: `);
    await awaitInLog('PosterAlert', 'alert NO_VALUE ');
    expect(walk.runBlock('PosterAlert', 1)).toMatch(/^PROBLEM: contracts do not accept the enclave /m);
    const NETWORK = machine.formatOptions();
    expect(walk.runBlock('EnclaveUnregistered', 1, { NETWORK })).toMatch(/^Done: register the enclave at /m);
    expect(walk.runBlock('PosterAlert', 1)).toMatch(/^OK: contracts accept every key that answered, /m);
    await awaitClear('PosterAlert');
  });

  test('PosterEnclaveAway: correct the address of an enclave', async () => {
    writePosterFile([ONE, 9]);
    restartPoster();
    await walk.awaitFiring('PosterEnclaveAway');
    await walk.awaitClear('PosterAlert');
    expect(walk.isFiring('PosterEnclaveAway')).toBe(true);
    await awaitInLog('PosterEnclaveAway', `warning ENCLAVE_UNREACHABLE ${url(9)}: `);
    writePosterFile([ONE, TWO]);
    walk.runBlock('PosterEnclaveAway', 1);
    await awaitClear('PosterEnclaveAway');
    await until('both enclaves give values', () =>
      /^sui_enclave_poster_values 2$/m.test(machine.get(POSTER.metricsPort, 'metrics')),
    );
  });

  test('PosterGasLow: raise gas_an_hour', async () => {
    writePosterFile([ONE, TWO], { gas_an_hour: countPosted() * GAS_BUDGET });
    restartPoster();
    await walk.awaitFiring('PosterGasLow');
    await walk.awaitClear('PosterAlert');
    machine.tell('renew_reading');
    await awaitInLog('PosterGasLow', 'alert GAS_AN_HOUR ');
    writePosterFile([ONE, TWO]);
    walk.runBlock('PosterGasLow', 1);
    await awaitClear('PosterGasLow');
    await walk.awaitClear('PosterAlert');
  });

  test('PosterSilent: start the poster again', async () => {
    machine.mustRun('systemctl', 'stop', UNIT);
    expect(walk.isFiring('PosterSilent')).toBe(true);
    walk.runBlock('PosterSilent', 0);
    await awaitClear('PosterSilent');
  });

  test('PosterAlert: correct the function, the budget and the node in poster.yaml', async () => {
    const { config } = machine.facts.poster;
    machine.tell('renew_reading');
    for (const [changes, ...texts] of [
      [{ function: `${config}::weather::update_weather` }, 'alert CALL_UNUSABLE '],
      [{ gas_budget: 1000 }, `alert WOULD_FAIL ${url(ONE)}: SUI_GAS: `],
      [{ node: machine.facts.outdatedNode }, 'alert CLOCK_DIFFERS ', 'alert GAS_PRICE '],
    ] as const) {
      writePosterFile([ONE], changes);
      walk.runBlock('PosterAlert', 2);
      for (const text of texts) await awaitInLog('PosterAlert', text);
      await walk.awaitFiring('PosterAlert');
    }
    writePosterFile([ONE]);
    walk.runBlock('PosterAlert', 2);
    await awaitClear('PosterAlert');
  });

  test('PosterAlert: let the poster write its folder', async () => {
    machine.mustRun('chmod', '500', '/var/lib/private/sui-enclave-post');
    machine.tell('renew_reading');
    await walk.awaitFiring('PosterAlert');
    await awaitInLog('PosterAlert', 'alert NOT_RECORDED ');
    walk.runBlock('PosterAlert', 2);
    await awaitClear('PosterAlert');
  });

  test('PosterTransactionsFail: find another process that uses the coin', async () => {
    machine.tell('break_sending');
    machine.tell('renew_reading');
    await walk.awaitFiring('PosterAlert');
    await awaitInLog('PosterAlert', 'alert SEND_FAILED ');
    expect(walk.isFiring('PosterTransactionsFail')).toBe(false);
    machine.mustRun('systemctl', 'stop', UNIT);
    expect(machine.tell('spend_coin')).toBe('spent');
    machine.mustRun('systemctl', 'start', UNIT);
    await walk.awaitFiring('PosterTransactionsFail');
    await awaitInLog('PosterTransactionsFail', 'alert COIN_MOVED ');
    await awaitClear('PosterTransactionsFail');
    await walk.awaitClear('PosterAlert');
  });

  test('PosterAlert, PosterTransactionsFail: name another node in place of one that swallows transactions', async () => {
    writePosterFile([ONE], { node: machine.facts.swallowingNode });
    restartPoster();
    machine.tell('renew_reading');
    await walk.awaitFiring('PosterAlert');
    await awaitInLog('PosterAlert', 'alert NODE_CONTRADICTS ');
    machine.tell('renew_reading');
    await awaitInLog('PosterAlert', 'alert COINS_IN_FLIGHT ');
    machine.tell('give_poster');
    await awaitInLog('PosterAlert', 'over: COINS_IN_FLIGHT ');
    expect(walk.isFiring('PosterTransactionsFail')).toBe(false);
    machine.tell('pass_epochs');
    await walk.awaitFiring('PosterTransactionsFail');
    await awaitInLog('PosterTransactionsFail', 'alert EXPIRED ');
    writePosterFile([ONE]);
    walk.runBlock('PosterTransactionsFail', 1);
    await awaitClear('PosterTransactionsFail');
    await walk.awaitClear('PosterAlert');
  });

  test('PosterTransactionsFail: raise gas_budget after transactions that had too little gas', async () => {
    expect(walk.isFiring('PosterTransactionsFail')).toBe(false);
    machine.tell('raise_gas');
    machine.tell('renew_reading?requests=3');
    // Once the last failure is over, the gauge is 0, and the alert depends on the counter.
    await until('three transactions have failed', () => {
      const log = walk.runBlock('PosterTransactionsFail', 0);
      return log.match(/over: POST_FAILED /g)?.length === 3;
    });
    expect(walk.isFiring('PosterTransactionsFail')).toBe(true);
    expect(walk.isFiring('PosterAlert')).toBe(false);
    expect(walk.runBlock('PosterTransactionsFail', 0)).toMatch(/alert POST_FAILED \S+: SUI_GAS: /);
    writePosterFile([ONE], { gas_budget: 2 * GAS_BUDGET });
    walk.runBlock('PosterTransactionsFail', 1);
    await awaitClear('PosterTransactionsFail');
  });
});
