/**
 * Measures whether a request for a new place costs more after many other places. Runs in this process, with
 * an upstream that answers immediately.
 */
import type { AxiosInstance } from 'axios';
import weather from '../../../src/apps/weather/app.ts';
import { EphemeralKey } from '../../../src/server/keys/key.ts';
import { Signer } from '../../../src/server/keys/signer.ts';
import { createLog } from '../../../src/service/log.ts';
import { median } from './measure.ts';
import type { Comparison } from './table.ts';

const FEW = 10;
const MANY = 100_000;
/** Number of requests in a measurement, and number of measurements. */
const STEP = 100;
const STEPS = 20;
const WARM_UP = 10_000;

/** A function that sends a request for a new place. */
type AskNew = () => Promise<unknown>;

function createApplication(): AskNew {
  const epoch = Math.floor(Date.now() / 1000);
  const client = { get: async () => ({ data: { current: { temp_c: 13, last_updated_epoch: epoch } } }) };
  const signer = new Signer(EphemeralKey.create(), weather.signs);
  const { endpoints: [processData] = [] } = weather.create({
    env: { UPSTREAM_CALLS_PER_MINUTE: '100000' },
    log: createLog('silent'),
    secret: () => 'key',
    upstream: () => client as unknown as AxiosInstance,
    sign: (type, timestampMs, data) => signer.sign(type, timestampMs, data),
    latest: () => {
      throw new Error('weather has no tasks');
    },
    emit: () => {},
  });
  if (!processData) throw new Error('the weather application has no /process_data');
  let placeCount = 0;
  return () => {
    const answer = processData.accept({ payload: { location: `place ${placeCount++}` } });
    return answer({ address: undefined });
  };
}

async function repeat(ask: AskNew, count: number): Promise<void> {
  for (let i = 0; i < count; i++) await ask();
}

/** Returns the CPU time of one request in microseconds, the median of the measurements. */
async function measureCpu(ask: AskNew): Promise<number> {
  const steps: number[] = [];
  for (let step = 0; step < STEPS; step++) {
    const before = process.cpuUsage();
    await repeat(ask, STEP);
    const { user, system } = process.cpuUsage(before);
    steps.push((user + system) / STEP);
  }
  return median(steps);
}

export async function benchPlaces(): Promise<Comparison> {
  await repeat(createApplication(), WARM_UP);
  const ask = createApplication();
  await repeat(ask, FEW);
  const floor = await measureCpu(ask);
  // The budget of calls allows at most MANY in a minute.
  await repeat(ask, MANY - FEW - 2 * STEP * STEPS);
  const ours = await measureCpu(ask);
  return {
    name: `CPU of a request for a new place after ${MANY} others`,
    floorName: `after ${FEW}`,
    unit: 'µs',
    ours,
    floor,
    ratio: ours / floor,
    target: { of: 'ratio', bound: 'at most', value: 1.1 },
  };
}
