/** Tests the front end's metrics, which have outcomes and durations, and nothing from a request. */
import { expect, test } from 'vitest';
import { FakeBackend, startTestFrontend } from './support.ts';

const NAME = 'sui_enclave_prover_frontend';

test('the metrics are not served by default', async () => {
  expect((await startTestFrontend()).metricsUrl).toBeUndefined();
});

test('the metrics count answers by code, time the parts of the work, and report whether the backend is ready', async () => {
  const backend = await FakeBackend.start();
  const { ask, post, metricsUrl } = await startTestFrontend({ backend, METRICS_PORT: '0' });
  expect((await ask()).status).toBe(200);
  expect((await ask({ aud: 'another client' })).body['code']).toBe('PROVER_CLIENT_NOT_ALLOWED');
  expect((await post('{')).status).toBe(400);
  const lines = async () => (await (await fetch(metricsUrl as string)).text()).split('\n');
  await expect
    .poll(lines)
    .toEqual(
      expect.arrayContaining([
        `${NAME}_requests_total{code="OK"} 1`,
        `${NAME}_requests_total{code="PROVER_CLIENT_NOT_ALLOWED"} 1`,
        `${NAME}_requests_total{code="OTHER"} 1`,
        `${NAME}_requests_total{code="PROVER_BUSY"} 0`,
        `${NAME}_part_seconds_count{part="verify"} 1`,
        `${NAME}_part_seconds_count{part="check"} 1`,
        `${NAME}_places 0`,
        `${NAME}_ready 1`,
        '# EOF',
      ]),
    );
  expect((await lines()).join()).not.toMatch(/another client|google/);
});

test('the metrics report that the front end is not ready if no backend is ready', async () => {
  const backend = await FakeBackend.start();
  const { metricsUrl } = await startTestFrontend({ backend, METRICS_PORT: '0' });
  backend.stop();
  expect(await (await fetch(metricsUrl as string)).text()).toContain(`\n${NAME}_ready 0\n`);
});
