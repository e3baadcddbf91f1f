/** Audits packages that an application depends on, and the folders and addresses of its sources. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  compile,
  compileHelper,
  DISHONEST,
  expectAgreement,
  expectVerdict,
  genuineModules,
  HELPER_TOML,
  HONEST,
  listFaultySubjects,
  MANIFEST,
  MODULE,
  packageIn,
  runAudit,
  WEATHER,
  weatherWith,
} from './packages.ts';
import { type Application, type Published, World } from './world.ts';

let world: World;
let genuine: Uint8Array[];
beforeAll(async () => {
  world = await World.start();
  genuine = await genuineModules();
});
afterAll(() => world.close());

const audit = (published: Published, application = WEATHER) => runAudit(world, published, application);

/** Returns weather with a helper package that checks each reading. */
function weatherWithHelper(toml = HELPER_TOML): Application {
  const caller = weatherWith((text) =>
    text.replace(/(let response = WeatherResponse)/, 'helper::helper::check(temperature);\n    $1'),
  );
  const manifest = `${String(WEATHER.files[MANIFEST])}helper = { local = "../helper" }\n`;
  const helper = { 'move/helper/Move.toml': toml, 'move/helper/sources/helper.move': HONEST };
  return { ...caller, files: { ...caller.files, ...helper, [MANIFEST]: manifest } };
}

/**
 * Compiles weather and its helper, with `enclave` in one package.
 *
 * @param helper the original id of the helper; undefined if the helper is in that package too
 */
async function compileWithHelper(
  helper: string | undefined,
  application = weatherWithHelper(),
): Promise<Uint8Array[]> {
  const published = helper === undefined ? {} : { helper };
  const folders = { helper: packageIn(application, 'helper') };
  return [...genuine, ...(await compile('weather', packageIn(application, 'weather'), published, folders))];
}

describe('dependencies', () => {
  test('a helper that is a package of its own agrees, even if it has a newer version with the same sources', async () => {
    const helper = await world.publishModules(await compileHelper(HONEST), 'helper');
    const published = await world.publishModules(
      await compileWithHelper(helper.packageId),
      'weather',
      undefined,
      [helper.packageId],
    );
    await world.upgrade(helper, helper.packageId, await compileHelper(HONEST));
    const { verdict } = await audit(published, weatherWithHelper());
    expectAgreement(verdict);
    expect(verdict.checks).toContainEqual(
      expect.objectContaining({
        what: `the package ${helper.packageId}`,
        against: expect.stringMatching('^move/helper of the commit'),
      }),
    );
    expect(verdict.holders.filter(({ what: capability }) => capability === 'UpgradeCap')).toHaveLength(2);
  });

  test('an audit reports a dishonest helper to which the application is linked', async () => {
    const helper = await world.publishModules(await compileHelper(DISHONEST), 'helper');
    const first = helper.packageId;
    const published = await world.publishModules(await compileWithHelper(first), 'weather', undefined, [
      first,
    ]);
    await world.upgrade(helper, first, await compileHelper(HONEST));
    const { verdict } = await audit(published, weatherWithHelper());
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(listFaultySubjects(verdict)).toEqual([first]);
  });

  test('an audit reports a dishonest version of the helper between the linked version and the latest', async () => {
    const helper = await world.publishModules(await compileHelper(HONEST), 'helper');
    const first = helper.packageId;
    const published = await world.publishModules(await compileWithHelper(first), 'weather', undefined, [
      first,
    ]);
    const second = await world.upgrade(helper, first, await compileHelper(DISHONEST));
    await world.upgrade(helper, second, await compileHelper(HONEST));
    const { verdict } = await audit(published, weatherWithHelper());
    expectVerdict(verdict, 'NOT_FULLY_CHECKED');
    expect(listFaultySubjects(verdict)).toEqual([second]);
  });

  test('an audit ignores a dishonest helper that is older than the linked one, since it can not run', async () => {
    const helper = await world.publishModules(await compileHelper(DISHONEST), 'helper');
    const second = await world.upgrade(helper, helper.packageId, await compileHelper(HONEST));
    const modules = await compileWithHelper(helper.packageId);
    const published = await world.publishModules(modules, 'weather', undefined, [second]);
    expectAgreement((await audit(published, weatherWithHelper())).verdict);
  });

  test('an audit reports a package that only a newer helper calls', async () => {
    const deep = {
      'Move.toml': HELPER_TOML.replace('helper', 'deep'),
      'sources/deep.move': 'module deep::deep;\npublic fun ok() {}\n',
    };
    const { packageId: deepId } = await world.publishModules(await compile('deep', deep), 'deep');
    const helper = await world.publishModules(await compileHelper(HONEST), 'helper');
    const first = helper.packageId;
    const published = await world.publishModules(await compileWithHelper(first), 'weather', undefined, [
      first,
    ]);
    const newerModules = await compile(
      'helper',
      {
        'Move.toml': `${HELPER_TOML}[dependencies]\ndeep = { local = "../deep" }\n`,
        'sources/helper.move': HONEST.replace('{ assert', '{ deep::deep::ok(); assert'),
      },
      { deep: deepId },
      { deep },
    );
    const second = await world.upgrade(helper, first, newerModules, [deepId]);
    const { verdict } = await audit(published, weatherWithHelper());
    expectVerdict(verdict, 'NOT_FULLY_CHECKED');
    expect(listFaultySubjects(verdict).sort()).toEqual([second, deepId].sort());
  });

  test('an audit reports a package in the linkage table that no source declares', async () => {
    const { packageId: helper } = await world.publishModules(await compileHelper(HONEST), 'helper');
    const weather = await compile('weather', packageIn(WEATHER, 'weather'));
    const published = await world.publishModules([...genuine, ...weather], 'weather', undefined, [helper]);
    const { verdict } = await audit(published);
    expectVerdict(verdict, 'NOT_FULLY_CHECKED');
    expect(listFaultySubjects(verdict)).toEqual([helper]);
  });
});

describe('addresses and folders', () => {
  test('an audit reports the package whose address Move.toml gives to the helper, in spite of an honest decoy', async () => {
    const { packageId: evil } = await world.publishModules(await compileHelper(DISHONEST), 'helper');
    const toml = `${HELPER_TOML}[addresses]\nhelper = "${evil}"\n`;
    const application = weatherWithHelper(toml);
    const decoy = await compileHelper(HONEST);
    const modules = [...(await compileWithHelper(undefined, application)), ...decoy];
    const published = await world.publishModules(modules, 'weather', undefined, [evil]);
    const { verdict } = await audit(published, application);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(listFaultySubjects(verdict)).toContain(evil);
  });

  test('an audit reports that two folders declare the module of the type', async () => {
    const text = String(WEATHER.files[MODULE]);
    const copy = {
      'move/copy/Move.toml': HELPER_TOML,
      'move/copy/sources/copy.move': `/* /* a */ */ ${text}`,
    };
    const { verdict } = await audit(await world.publish(WEATHER, world.loadSource(WEATHER)), {
      ...WEATHER,
      files: { ...WEATHER.files, ...copy },
    });
    expectVerdict(verdict, 'BYTECODE_UNKNOWN');
    expect(verdict.line).toContain('move/copy and move/weather of the commit');
  });

  test('the report names the folder of each package', async () => {
    const modules = [...(await compileWithHelper(undefined)), ...(await compileHelper(HONEST))];
    const { verdict, commit } = await audit(
      await world.publishModules(modules, 'weather'),
      weatherWithHelper(),
    );
    expectAgreement(verdict);
    expect(verdict.checks.map(({ against }) => against)).toContain(
      `move/weather and move/helper of the commit ${commit}`,
    );
  });
});
