import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { ConfigError } from '../../../../../src/library/errors.ts';
import { LAST_PORT, portsFrom, requireFree } from '../../../../../src/toolchain/dev/wallet/ports.ts';
import { findFreePorts } from './free_ports.ts';

test('PORT is the port of the page, and its services have the next four', () => {
  expect(portsFrom(4170)).toEqual({ page: 4170, salt: 4171, prover: 4172, issuer: 4173, node: 4174 });
  expect(portsFrom(LAST_PORT).node).toBe(65_535);
});

test('PORT=0 lets the system choose all ports', async () => {
  const ports = portsFrom(0);
  expect(new Set(Object.values(ports))).toEqual(new Set([0]));
  await requireFree(ports);
});

test.each([
  ['page', "the page's"],
  ['salt', "the salt service's"],
  ['prover', "the prover's"],
  ['issuer', "the issuer's"],
  ['node', "the Sui node's"],
] as const)('a busy port is refused by the name of its part: %s', async (part, name) => {
  const ports = await findFreePorts();
  const listener = createServer().listen(ports[part], '127.0.0.1');
  onTestFinished(() => void listener.close());
  await once(listener, 'listening');
  const check = requireFree(ports);
  await expect(check).rejects.toThrow(ConfigError);
  await expect(check).rejects.toThrow(
    `can't listen on port ${ports[part]}, ${name}: EADDRINUSE. Set PORT to the first of 5 free ports in a row`,
  );
});
