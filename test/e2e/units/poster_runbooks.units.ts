/** Walks through the runbooks of the poster, against a model of a Sui node and enclaves that sign weather. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ChainMachine, ROOT, type Service, url } from './chain_machine.ts';
import { until, whyNot } from './machine.ts';
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

/** Waits until the poster has written a new reading, and then until the alert has cleared. */
async function clears(alert: string): Promise<void> {
  const time = machine.tell('renew_reading');
  const line = new RegExp(`^posted: .*the value of ${time} `, 'm');
  await until('the poster writes', () => line.test(machine.readOutput(UNIT)));
  await walk.clears(alert);
}

describe.skipIf(whyNot() !== undefined)('the runbooks of the poster', () => {
  beforeAll(async () => {
    machine = new ChainMachine();
    await machine.bootWorld();
    const { posterKey, poster } = machine.facts;
    const { node, config } = poster;
    walk = new Walk(
      machine,
      { poster: POSTER.metricsPort },
      { NETWORK: `localnet --rpc-url ${node} --root ${ROOT} --config ${config}`, URL: url(ONE) },
    );
    machine.installService(POSTER, posterKey);
    for (const port of [ONE, TWO]) {
      machine.tell(`start?port=${port}`);
      machine.tell(`register?port=${port}`);
    }
  });
  afterAll(() => machine.close());

  test('PosterAlert: send SUI to a poster without a coin', async () => {
    writePosterFile([ONE]);
    machine.mustRun('systemctl', 'start', UNIT);
    await walk.fires('PosterAlert');
    expect(walk.runBlock('PosterAlert', 0)).toMatch(/alert NO_GAS_COIN /);
    machine.tell('give_poster');
    await clears('PosterAlert');
  });
});
