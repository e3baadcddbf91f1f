import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { ConfigError } from '../../../../../src/library/errors.ts';
import { LAST_PORT, portsFrom, requireFree } from '../../../../../src/toolchain/dev/wallet/ports.ts';
import { freePorts } from './free_ports.ts';

test('PORT is the page’s, and the next four are those of its services', () => {
  expect(portsFrom(4170)).toEqual({ page: 4170, salt: 4171, prover: 4172, issuer: 4173, node: 4174 });
  expect(portsFrom(LAST_PORT).node).toBe(65_535);
});

test('0 lets the system choose all of them', async () => {
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
] as const)('a busy port of the %s is refused by its name', async (part, name) => {
  const ports = await freePorts();
  const taken = createServer().listen(ports[part], '127.0.0.1');
  onTestFinished(() => void taken.close());
  await once(taken, 'listening');
  const refused = requireFree(ports);
  await expect(refused).rejects.toThrow(ConfigError);
  await expect(refused).rejects.toThrow(
    `can't listen on port ${ports[part]}, ${name}: EADDRINUSE. Set PORT to another port, after which the next 4 are free too`,
  );
});
