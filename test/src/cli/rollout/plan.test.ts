/** `rollout.yaml`: the content that a plan may have, and the errors for content that it may not have. */
import { describe, expect, test } from 'vitest';
import { parsePlan } from '../../../../src/cli/rollout/plan.ts';

const COMMANDS = {
  start: [['systemctl', 'start', 'enclave-2']],
  switch: [['./switch', 'new']],
  switch_back: [['./switch', 'old']],
  stop_old: [['systemctl', 'stop', 'enclave-1']],
  stop_new: [['systemctl', 'stop', 'enclave-2']],
};
const PLAN = {
  network: 'testnet',
  registrar: `0x${'3'.repeat(64)}`,
  old: { pcrs: 'nitro-1.pcrs', enclaves: ['https://one.example'] },
  new: { pcrs: '/var/nitro-2.pcrs', enclaves: ['https://two.example'] },
  commands: COMMANDS,
  overlap: 60,
};

/** Parses JSON, which is YAML. */
const parse = (changes: object) => parsePlan(JSON.stringify({ ...PLAN, ...changes }), '/etc/rollout.yaml');
const withCommand = (command: unknown) => ({ commands: { ...COMMANDS, start: [command] } });

test('a plan is read as written, with defaults for missing settings', () => {
  expect(parse({})).toEqual({
    folder: '/etc',
    network: 'testnet',
    app: undefined,
    nodes: [],
    registrarId: PLAN.registrar,
    root: undefined,
    // The path is relative to the plan.
    old: { pcrs: '/etc/nitro-1.pcrs', urls: ['https://one.example'] },
    new: { pcrs: '/var/nitro-2.pcrs', urls: ['https://two.example'] },
    balancer: undefined,
    sourceUrl: undefined,
    commands: { ...COMMANDS, provision: [] },
    overlap: 60,
    isEndedByAdmin: true,
    drainMs: 30_000,
    settleMs: 300_000,
    startMs: 600_000,
    commandMs: 600_000,
    adminMs: 3_600_000,
  });
  const urls = { balancer: 'https://all.example', source_url: 'https://git.example/x' };
  expect(parse(urls)).toMatchObject({ balancer: urls.balancer, sourceUrl: urls.source_url });
  const all = { app: 'weather', node: 'https://node.example', root: 'root.pem', end_overlap: 'time' };
  expect(
    parse({ ...all, drain: 0, settle: 1, start_within: 2, command_within: 3, admin_within: 0 }),
  ).toMatchObject({
    app: 'weather',
    nodes: ['https://node.example'],
    root: '/etc/root.pem',
    isEndedByAdmin: false,
    drainMs: 0,
    settleMs: 1000,
    startMs: 2000,
    commandMs: 3000,
    adminMs: 0,
  });
  const node = ['https://one.example', 'https://two.example'];
  expect(parse({ node })).toMatchObject({ nodes: node });
  expect(parse({ registrar: undefined }).registrarId).toBe(undefined);
});

describe('a plan is refused:', () => {
  test.each<[string, object]>([
    ['network is missing', { network: undefined }],
    ['node has a URL twice', { node: ['https://node.example', 'https://node.example/'] }],
    ['registrar must be 0x and 64 hexadecimal digits', { registrar: '0x3' }],
    ['old must be a map', { old: 'nitro-1.pcrs' }],
    ['old.pcrs must be the path of a file', { old: { ...PLAN.old, pcrs: '' } }],
    ['old.enclaves must have at least one URL', { old: { ...PLAN.old, enclaves: [] } }],
    [
      'new.enclaves must have at most 16 URLs',
      { new: { ...PLAN.new, enclaves: Array.from({ length: 17 }, (_, n) => `http://e${n}.example`) } },
    ],
    ['new has a URL that is also in old', { new: { ...PLAN.new, enclaves: ['https://one.example/'] } }],
    ['new.enclaves.0 must be the URL of an enclave', { new: { ...PLAN.new, enclaves: ['one.example'] } }],
    ['balancer must be the URL of an enclave', { balancer: 'all.example' }],
    ['source_url must be 1 to 200 printable', { source_url: 'ü' }],
    ['commands.stop_old is missing', { commands: { ...COMMANDS, stop_old: undefined } }],
    ['there is no property commands.stop', { commands: { ...COMMANDS, stop: COMMANDS.stop_old } }],
    ['commands.start must have at least one command', { commands: { ...COMMANDS, start: [] } }],
    ['commands.start must be a list of commands', { commands: { ...COMMANDS, start: 'systemctl start' } }],
    ['commands.start.0 must be a list of strings', withCommand('systemctl start enclave-2')],
    ['commands.start.0 must name a program', withCommand([])],
    ['commands.start.0 must name a program', withCommand(['', 'start'])],
    ['commands.start.0.1 must be a string, in quotes', withCommand(['kill', 7])],
    ['overlap must be an integer from 1 to 1439', { overlap: 1440 }],
    ['end_overlap must be admin or time', { end_overlap: 'never' }],
    ['drain must be an integer from 0 to 86400', { drain: -1 }],
    ['there is no property capability', { capability: PLAN.registrar }],
  ])('%s', (message, changes) => {
    expect(() => parse(changes)).toThrow(
      expect.objectContaining({
        code: 'ROLLOUT_PLAN',
        exit: 2,
        message: expect.stringContaining(`/etc/rollout.yaml: ${message}`),
      }),
    );
  });
});
