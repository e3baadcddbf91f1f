/**
 * Checks that the differential program finds differences between nodes, and none between two of the same
 * kind.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { compareNodes, main } from '../../../scripts/check/differential.ts';
import { type DevSui, startDevSui } from '../../../src/toolchain/dev/sui/service.ts';
import { call } from '../../src/cli/run.ts';

let folder: string;
let models: [DevSui, DevSui];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'differential-'));
  const options = { port: 0, faucetPort: 0, folder: pathToFileURL(`${folder}/`), env: {}, lagMs: 0 };
  models = [await startDevSui(options), await startDevSui(options)];
});
afterAll(async () => {
  for (const model of models) await model.close();
  rmSync(folder, { recursive: true });
});

const toUrls = ({ node, faucetUrl }: DevSui) => ({ url: node.url, faucet: faucetUrl });

test('two models behave in the same way, whether transactions are accepted or refused', async () => {
  const outcomes = await compareNodes([toUrls(models[0]), toUrls(models[1])], 60, 7);
  expect(Object.values(outcomes).reduce((sum, count) => sum + count)).toBe(60);
  expect(outcomes['done']).toBeGreaterThan(10);
  // Several kinds of rules refuse the other transactions.
  expect(Object.keys(outcomes).length).toBeGreaterThan(5);
});

test('a node that loses an event differs', async () => {
  const { executor } = models[1].node;
  const { engine } = executor;
  executor.engine = async (execution) => {
    const executed = await engine(execution);
    return { ...executed, events: executed.events.slice(1) };
  };
  const compared = compareNodes([toUrls(models[0]), toUrls(models[1])], 60, 7);
  await expect(compared).rejects.toMatchObject({ code: 'OUTCOMES_DIFFER' });
});

test('a command line that names a node without its faucet is refused', async () => {
  expect((await call(main, ['--node', 'http://127.0.0.1:1'])).status).toBe(2);
});
