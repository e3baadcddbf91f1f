import { expect, test } from 'vitest';
import { namePorts, playPorts } from '../../../../../src/toolchain/dev/play/ports.ts';

test('make play has the ports of a local network for node and faucet, and ports from 4170 to 4183 for all others', () => {
  const ports = playPorts({});
  expect([ports.wallet.node, ports.faucet]).toEqual([9000, 9123]);
  const numbers = namePorts(ports, true).map(([port]) => port);
  expect(new Set(numbers).size).toBe(numbers.length);
  expect(numbers.filter((port) => port < 4170 || port > 4183)).toEqual([9000, 9123]);
});

test('PORT moves all ports of make play', () => {
  const numbers = namePorts(playPorts({ PORT: '20000' }), true).map(([port]) => port);
  expect(numbers.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 14 }, (_, index) => 20_000 + index));
});

test('make play without a wallet does not need the ports of the wallet', () => {
  const all = namePorts(playPorts({}), true).length;
  expect(namePorts(playPorts({}), false).length).toBeLessThan(all);
});

test.each(['80', '65523', 'x', '0'])('PORT=%s is refused', (PORT) => {
  expect(() => playPorts({ PORT })).toThrow(expect.objectContaining({ code: 'CONFIG' }));
});
