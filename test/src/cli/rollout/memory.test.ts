/** The file with the steps of a rollout that the chain and the enclaves don't show. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openMemory } from '../../../../src/cli/rollout/memory.ts';

const [FIRST_PLAN, SECOND_PLAN] = ['1'.repeat(64), '2'.repeat(64)] as const;

function createFolder(): { readonly dir: string; readonly path: string } {
  const dir = mkdtempSync(join(tmpdir(), 'rollout-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return { dir, path: join(dir, 'deployments', 'localnet.weather.rollout.json') };
}

test('the memory keeps the steps of a rollout until forget() is called', () => {
  const { dir, path } = createFolder();
  const memory = openMemory(path, FIRST_PLAN);
  expect(memory.steps).toEqual({});
  memory.remember({ switching: 1 });
  memory.remember({ switching: 1, switched: 2 });
  expect(memory.steps).toEqual({ switching: 1, switched: 2 });
  expect(openMemory(path, FIRST_PLAN).steps).toEqual({ switching: 1, switched: 2 });
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({ rollout: FIRST_PLAN, switching: 1, switched: 2 });
  memory.forget();
  expect([memory.steps, openMemory(path, FIRST_PLAN).steps]).toEqual([{}, {}]);
  expect(readdirSync(join(dir, 'deployments'))).toEqual([]);
});

test('a dry run forgets the steps, and leaves the file', () => {
  const { path } = createFolder();
  openMemory(path, FIRST_PLAN).remember({ switching: 1 });
  const memory = openMemory(path, FIRST_PLAN, true);
  memory.forget();
  expect([memory.steps, openMemory(path, FIRST_PLAN).steps]).toEqual([{}, { switching: 1 }]);
});

test('the memory keeps the newest version of the config, even if no step was taken', () => {
  const { path } = createFolder();
  const memory = openMemory(path, FIRST_PLAN);
  memory.see(7n);
  memory.see(6n);
  expect([memory.newestVersion, openMemory(path, FIRST_PLAN).newestVersion]).toEqual([7n, 0n]);
  memory.remember({});
  expect(openMemory(path, FIRST_PLAN)).toMatchObject({ newestVersion: 7n, steps: {} });
  // The version may belong to another config, so it does not count.
  expect(openMemory(path, SECOND_PLAN)).toMatchObject({ newestVersion: 0n, steps: {} });
  memory.remember({ switching: 1 });
  expect(openMemory(path, FIRST_PLAN)).toMatchObject({ newestVersion: 7n, steps: { switching: 1 } });
  expect(() => openMemory(path, SECOND_PLAN)).toThrow(
    expect.objectContaining({ code: 'ROLLOUT_UNFINISHED' }),
  );
});

test('the memory does not follow a symbolic link that has the name of its temporary file', () => {
  const { dir, path } = createFolder();
  mkdirSync(join(dir, 'deployments'));
  const victim = join(dir, 'victim');
  writeFileSync(victim, 'kept');
  for (const suffix of [process.pid, 'new']) symlinkSync(victim, `${path}.${suffix}`);
  openMemory(path, FIRST_PLAN).remember({ switching: 1 });
  expect([readFileSync(victim, 'utf8'), openMemory(path, FIRST_PLAN).steps]).toEqual([
    'kept',
    { switching: 1 },
  ]);
});

test('the memory is refused if it belongs to another rollout, unless that rollout has ended', () => {
  const { path } = createFolder();
  const memory = openMemory(path, FIRST_PLAN);
  memory.remember({ switching: 1, switched: 2, stopping: 3 });
  const refused = expect.objectContaining({ code: 'ROLLOUT_UNFINISHED', exit: 2 });
  expect(() => openMemory(path, SECOND_PLAN)).toThrow(refused);
  memory.remember({ ...memory.steps, stopped: 4 });
  expect(openMemory(path, SECOND_PLAN).steps).toEqual({});
  expect(openMemory(path, FIRST_PLAN).steps).toMatchObject({ stopped: 4 });
});

test.each(['', '{', '[]', '{"rollout":"1"}', `{"rollout":"${FIRST_PLAN}","switched":"yesterday"}`])(
  'the memory is not taken for a missing file if it is damaged: %j',
  (content) => {
    const { dir } = createFolder();
    const path = join(dir, 'rollout.json');
    writeFileSync(path, content);
    expect(() => openMemory(path, FIRST_PLAN)).toThrow(
      expect.objectContaining({ code: 'ROLLOUT_UNFINISHED' }),
    );
  },
);
