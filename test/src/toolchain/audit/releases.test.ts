/** The packages that count as a release of `move/enclave`. */
import { beforeAll, describe, expect, test } from 'vitest';
import { Compiler, type Modules } from '../../../../src/toolchain/audit/compile.ts';
import { ownRelease, RELEASES, releaseIn } from '../../../../src/toolchain/audit/releases.ts';
import { chooseFramework } from '../../../../src/toolchain/move/packages.ts';

let releaseModules: Modules;
beforeAll(async () => {
  releaseModules = await new Compiler(chooseFramework({}), { network: undefined }).enclave();
});

// After a change of `move/enclave`, run: npm test -- test/src/toolchain/audit/releases.test.ts -u
test('the release of this program is its move/enclave', () => {
  expect(ownRelease('this', releaseModules)).toMatchInlineSnapshot(`
    {
      "modules": {
        "attested": "95cbb2317c024a39a796f291e6cf819636c70591e57f5596001f139a049e7393",
        "enclave": "3a6a358aef0fd517941cabda10286e0f889578b8e06820104463b1076b98d25a",
        "once": "61f43a12bf12f392cee4c78df9009ced283871b8c4ba99e77b261f6b98117d61",
        "pcrs": "2f8030a880b1c424eca6946f879896542648e489e44c08e5d138bb83594ee977",
        "source": "5d6abe80151f601b49145fef63ae9008a8643f05ebe2a51f461f2b4e2986851a",
      },
      "name": "this",
      "packageVersion": 1n,
    }
  `);
});

describe('a release', () => {
  test('is in a package that has each of its modules', () => {
    const release = ownRelease('this', releaseModules);
    const older = { ...release, name: 'older', modules: { more: '0'.repeat(64) } };
    expect(releaseIn(releaseModules, [older, release])?.name).toBe('this');
    expect(releaseIn(new Map([...releaseModules, ['more', Uint8Array.of(1)]]), [older, release])?.name).toBe(
      'this',
    );
    for (const name of releaseModules.keys()) {
      const without = new Map([...releaseModules].filter(([moduleName]) => moduleName !== name));
      expect(releaseIn(without, [release]), name).toBeUndefined();
      expect(
        releaseIn(new Map([...releaseModules, [name, Uint8Array.of(1)]]), [release]),
        name,
      ).toBeUndefined();
    }
  });

  test('in the list has a name and modules of its own', () => {
    expect(new Set(RELEASES.map(({ name }) => name)).size).toBe(RELEASES.length);
    // A release without modules would match every package.
    expect(RELEASES.filter(({ modules }) => modules['enclave'] === undefined)).toEqual([]);
  });
});
