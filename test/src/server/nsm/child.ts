/**
 * Runs inside the child process of `driver.ts`. Evaluates the functions that the test sends, with the scope
 * below.
 */
import { createRequire } from 'node:module';
import { runInThisContext } from 'node:vm';
import { NsmDevice } from '../../../../src/server/nsm/device.ts';
import { Nsm } from '../../../../src/server/nsm/nsm.ts';

const addonPath = process.env['NSM_TEST_ADDON'];
if (!addonPath || !process.send) {
  throw new Error('this program is started by driver.ts');
}
const send = process.send.bind(process);

function makeDevice(addonPath: string) {
  const device = new NsmDevice({ addonPath });
  return { device, nsm: new Nsm(device) };
}

const scope = {
  /** The compiled addon itself, not a fake. */
  addon: createRequire(import.meta.url)(addonPath) as {
    Device: new (
      ...path: unknown[]
    ) => { transact(...request: unknown[]): Promise<Uint8Array>; close(): void };
  },
  addonPath,
  NsmDevice,
  ...makeDevice(addonPath),
  pause: (ms: number) => new Promise((resolve) => setTimeout(resolve, ms)),
};
export type Scope = typeof scope;

interface Message {
  readonly renewDevice?: true;
  readonly id: number;
  readonly source: string;
  readonly argument: unknown;
}

process.on('message', async ({ renewDevice, id, source, argument }: Message) => {
  if (renewDevice) {
    scope.device.close();
    Object.assign(scope, makeDevice(scope.addonPath));
    return;
  }
  try {
    const value = await runInThisContext(source)({ ...scope, argument });
    send({ id, value });
  } catch (error) {
    if (!(error instanceof Error)) {
      throw error;
    }
    send({ id, error: { ...error, name: error.name, message: error.message } });
  }
});
