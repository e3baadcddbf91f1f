/**
 * Each alert has a runbook that names unit, command, change, next key and way back. `make test-units` walks
 * through them.
 */
import { globSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/cli/commands.ts';
import { RULES, RUNBOOKS, readRunbook } from '../runbooks.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const UNITS = globSync(['src/cli/**/*.service', 'deploy/systemd/*.service'], { cwd: ROOT }).map((path) =>
  basename(path, '.service'),
);
const HEADINGS = [...RUNBOOKS.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);

/**
 * Returns the names of the units in a text. An instance of a template becomes the template's name, with @.
 */
const findUnits = (text: string) =>
  [...text.matchAll(/sui-enclave-?[a-z-]*(?:@(?:NAME|NEW|\{\{ \$labels\.enclave \}\}))?/g)]
    .map(([unit]) => unit.replace(/@.*/, '@'))
    .filter((unit) => unit !== 'sui-enclave');

test('the sections are "Replace an enclave" and one for each alert, in the order of the alerts', () => {
  expect(HEADINGS).toEqual(['Replace an enclave', ...RULES.map(({ alert }) => alert)]);
});

describe.each([...HEADINGS])('%s', (heading = '') => {
  const { text, blocks, rows } = readRunbook(heading);

  test('names unit, change, next key and way back, and has commands', () => {
    expect([...rows.keys()]).toEqual(['unit', 'changes', 'next key', 'way back']);
    expect(blocks.length).toBeGreaterThan(0);
    for (const unit of findUnits(text)) expect(UNITS, text).toContain(unit);
  });

  test('has only commands that exist', () => {
    for (const line of blocks.flat().flatMap((commands) => commands.split('; '))) {
      const [, program, name = ''] =
        /^(npx --offline sui-enclave|systemctl|journalctl|nitro-cli) (\S+)/.exec(line) ?? [];
      expect(program, line).toBeDefined();
      if (program?.startsWith('npx')) expect(COMMANDS).toHaveProperty([name]);
      // The runbooks do not use `systemctl status`, since host_status describes the state of the units.
      if (program === 'systemctl') expect(['start', 'stop', 'restart', 'reset-failed']).toContain(name);
    }
  });

  test('says that the key is lost if a command ends an enclave', () => {
    const ends =
      /systemctl (?:stop|restart) sui-enclave@|terminate-enclave|host_remove|replace (?:the|each) enclave\]/i;
    if (ends.test(text)) expect(text).toMatch(/keys? (is|are) lost/);
    expect(text).not.toMatch(/nitro-enclaves-allocator|reboot/);
  });
});

test('each alert links to its section and names only units that exist; EnclaveSilent names host_status', () => {
  for (const { alert, annotations } of RULES) {
    expect(annotations.page).toBe(`deploy/observe/RUNBOOKS.md#${alert.toLowerCase()}`);
    for (const unit of findUnits(annotations.runbook ?? '')) expect(UNITS, alert).toContain(unit);
  }
  const [silent] = RULES.filter(({ alert }) => alert === 'EnclaveSilent');
  expect(silent?.annotations.runbook).toMatch(/`npx --offline sui-enclave host_status /);
});

test('no alert tells its reader to run doctor, which checks whether another enclave has room', () => {
  expect(RULES.filter(({ annotations }) => annotations.runbook?.includes('doctor'))).toEqual([]);
  expect(readRunbook('EnclaveSilent').blocks.flat().join('\n')).not.toMatch(/doctor/);
});
