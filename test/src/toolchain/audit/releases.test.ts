/** The packages that count as a release of `move/enclave` and `move/feed`. */
import { beforeAll, describe, expect, test } from 'vitest';
import { Compiler, type Modules } from '../../../../src/toolchain/audit/compile.ts';
import { feedModulesIn, ownRelease, RELEASES, releaseIn } from '../../../../src/toolchain/audit/releases.ts';
import { chooseFramework } from '../../../../src/toolchain/move/packages.ts';

let releaseModules: Modules;
let feedModules: Modules;
beforeAll(async () => {
  const compiler = new Compiler(chooseFramework({}), { network: undefined });
  releaseModules = await compiler.enclave();
  feedModules = await compiler.feed();
});

// After a change of either, run: npm test -- test/src/toolchain/audit/releases.test.ts -u
test('the release of this program consists of its move/enclave and move/feed', () => {
  expect(ownRelease('this', releaseModules, feedModules)).toMatchInlineSnapshot(`
    {
      "feed": {
        "feed": "e4157721702dffde5213c3610869d067d82cc807a9fa76863624d5a3bd020275",
      },
      "modules": {
        "attested": "b1ce8865ddc7736fa4f37cb79bca820da118cf0f56b1c60149363533e1e60659",
        "enclave": "28ddbf92655a251f363e5494473d73cee0ae76e8b4150628fa3d23c97e7316fd",
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
    const release = ownRelease('this', releaseModules, feedModules);
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

  test('of feed is in a package that has each of its modules, whatever else the package has', () => {
    const release = ownRelease('this', releaseModules, feedModules);
    const changed = new Map([...feedModules].map(([name, bytes]) => [name, Uint8Array.of(...bytes, 0)]));
    const older = ownRelease('older', releaseModules, changed);
    expect(feedModulesIn(new Map([...releaseModules, ...feedModules]), [older, release])).toEqual(['feed']);
    expect(feedModulesIn(changed, [release])).toEqual([]);
    expect(feedModulesIn(changed, [release, older])).toEqual(['feed']);
    expect(feedModulesIn(releaseModules, [release, older])).toEqual([]);
  });

  test('in the list has a unique name, and the modules of enclave and feed', () => {
    expect(new Set(RELEASES.map(({ name }) => name)).size).toBe(RELEASES.length);
    // A release without modules would match every package.
    const incompleteReleases = RELEASES.filter(
      ({ modules, feed }) => modules['enclave'] === undefined || feed['feed'] === undefined,
    );
    expect(incompleteReleases).toEqual([]);
  });
});
