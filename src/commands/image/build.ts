/** `make`: builds the enclave image of an application, out/<name>.eif, with its registers out/<name>.pcrs. */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError } from 'sui-enclave/errors';
import { command, runAsProcess } from '../command.ts';
import { path, text } from '../values.ts';
import { makeBase } from './base.ts';
import { bundle } from './bundle.ts';
import { buildContainer } from './container.ts';
import { digestOfModules, imageSources, makeContext, neededByImage, readLock } from './context.ts';
import { formatPcrs, measureImage } from './eif/measure.ts';
import { readEif } from './eif/read.ts';
import { licensesOf } from './licenses.ts';
import { CHANNEL_OPTION, checkChannel, isUnchanged, makeMeasurements } from './measurements.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const LOCK = 'enclave/debian.lock.json';

export const main = command({
  name: 'build_image',
  purpose: 'Builds the enclave image of an application, <name>.eif, and writes its registers as <name>.pcrs.',
  arguments: {},
  options: {
    'app-dir': {
      value: '<folder>',
      help: 'the folder of the application, relative to the root of the repository',
      schema: path,
      default: 'src/apps/weather',
    },
    name: { value: '<name>', help: 'the name of the files that it writes', schema: text, default: 'nitro' },
    ...CHANNEL_OPTION,
    dir: {
      value: '<folder>',
      help: 'the folder for intermediate files',
      schema: path,
      default: 'build/image',
    },
    cache: {
      value: '<folder>',
      help: 'the cache of downloaded packages',
      schema: path,
      default: 'build/packages',
    },
    out: { value: '<folder>', help: 'the folder for the results', schema: path, default: 'out' },
    fresh: { help: 'reuse nothing from earlier builds' },
    'extra-lock': {
      value: '<file>',
      help: 'another lock file, whose packages are added to the base; for make verify-build',
      schema: path,
      repeated: true,
    },
    overlay: {
      value: '<tar>',
      help: 'an archive that is unpacked over the base; for make verify-build',
      schema: path,
      repeated: true,
    },
  },
  async run({ options }, { io }) {
    const { 'app-dir': appDir, name } = options;
    if (!/^[a-z0-9_-]+(\/[a-z0-9_-]+)*$/.test(appDir) || !existsSync(join(ROOT, appDir, 'app.yaml'))) {
      throw new ConfigError(`${appDir} is not the folder of an application: it has no app.yaml`);
    }
    const needed = neededByImage(ROOT, appDir);
    const { channel } = options;
    checkChannel(ROOT, channel, imageSources(needed, appDir));
    const dir = resolve(options.dir);
    mkdirSync(dir, { recursive: true });
    const context = makeContext(ROOT, dir, appDir);
    const locks = [LOCK, ...options['extra-lock']].map((lock) => join(ROOT, lock));
    await makeBase(locks, join(context, 'base.tar'), resolve(options.cache), options.overlay);

    const output = mkdtempSync(join(dir, 'output-'));
    buildContainer({
      file: join(ROOT, 'Containerfile'),
      context,
      args: { APP_DIR: appDir },
      output,
      fresh: options.fresh,
    });
    const eif = readFileSync(join(output, 'image.eif'));
    const registers = formatPcrs(measureImage(readEif(eif)));
    const target = (file: string) => join(resolve(options.out), file);
    mkdirSync(options.out, { recursive: true });
    copyFileSync(join(output, 'image.eif'), `${target(name)}.eif.new`);
    renameSync(`${target(name)}.eif.new`, target(`${name}.eif`));
    const { version } = JSON.parse(readFileSync(join(ROOT, 'src/server/package.json'), 'utf8'));
    const licenses = licensesOf(await bundle(ROOT, version, appDir, output));
    rmSync(output, { recursive: true });
    writeFileSync(target(`${name}.pcrs`), registers);
    writeFileSync(target(name === 'nitro' ? 'licenses.txt' : `${name}.licenses.txt`), licenses);
    const packages = digestOfModules(readLock(ROOT), needed);
    const measurements = makeMeasurements(ROOT, { folder: appDir, version }, channel, LOCK, packages, eif);
    writeFileSync(
      target(name === 'nitro' ? 'measurements.json' : `${name}.measurements.json`),
      `${JSON.stringify(measurements, null, 2)}\n`,
    );
    const file = `${options.out}/${name}.eif`;
    io.log(`${file}, ${(eif.length / 1e6).toFixed(1)} MB\n${registers}`);
    if (isUnchanged(ROOT, LOCK) === false) {
      io.log(`${LOCK} is not the committed one: these registers are not those of the commit.`);
    }
    return { json: { file, bytes: eif.length, measurements } };
  },
});

if (import.meta.main) await runAsProcess(main);
