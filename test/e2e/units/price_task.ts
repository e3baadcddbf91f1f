/**
 * Task of an application, for a fake enclave. The server's own scheduler runs it. Each second, it reads a
 * price from a source that can fail.
 */
import * as v from 'valibot';
import { errorClass, getJson, task } from '../../../src/server/index.ts';
import type { TaskReport } from '../../../src/server/tasks/task.ts';
import { Tasks } from '../../../src/server/tasks/tasks.ts';
import { createLog } from '../../../src/service/log.ts';
import { createUpstreams } from '../../../src/service/upstream.ts';
import { listenOnLoopback } from '../../../src/testing/fakes.ts';

/** State of the source. With `hangs`, a run does not end, even after its time limit. */
export type Source = 'answers' | 'fails' | 'hangs';

const HOST = 'prices.example';
const SECOND = 1000;
const Price = v.object({ cents: v.number() });

class PriceError extends errorClass({
  PRICE_UNAVAILABLE: { status: 502, meaning: 'the source gives no price' },
  PRICE_TIMEOUT: { status: 504, meaning: 'the source gives no price in time' },
}) {}

export interface PriceTask {
  readonly tasks: Tasks;
  source: Source;
}

/** Starts the task with a source that answers. @param onReport called for each failure and recovery */
export async function startPriceTask(onReport: (report: TaskReport) => void): Promise<PriceTask> {
  const log = createLog('silent');
  const tasks = new Tasks({ log, isReady: () => true, onReport });
  const price: PriceTask = { tasks, source: 'answers' };
  const { origin } = await listenOnLoopback((_request, response) => {
    response.writeHead(price.source === 'answers' ? 200 : 503).end('{"cents":100}');
  });
  const source = createUpstreams({ endpoints: [HOST] }, { [HOST]: origin })(HOST);
  const errors = { class: PriceError, unavailable: 'PRICE_UNAVAILABLE', timeout: 'PRICE_TIMEOUT' } as const;
  const readPrice = task({
    name: 'price',
    everyMs: SECOND,
    jitterMs: 0,
    timeoutMs: SECOND,
    async run(_context, signal) {
      if (price.source === 'hangs') await new Promise(() => {});
      await getJson(source, '/price', Price, { errors, signal });
    },
  });
  tasks.set([readPrice]);
  tasks.start();
  return price;
}
