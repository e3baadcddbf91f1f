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
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError } from 'sui-enclave/errors';
import { command, runAsProcess } from '../command.ts';
import { makeBase } from './base.ts';
import { bundle } from './bundle.ts';
import { buildContainer } from './container.ts';
import { digestOfModules, imageSources, makeContext, neededByImage, readLock } from './context.ts';
import { formatPcrs, measureImage } from './eif/measure.ts';
import { readEif } from './eif/read.ts';
import { licensesOf } from './licenses.ts';
import { checkChannel, isUnchanged, makeMeasurements } from './measurements.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const LOCK = 'enclave/debian.lock.json';

const USAGE = `usage: node src/commands/image/build.ts --app-dir src/apps/weather [--name nitro] [--channel experimental]
         [--dir build/image] [--cache DIR] [--out out] [--fresh] [--extra-lock FILE]... [--overlay TAR]...

Builds out/<name>.eif and out/<name>.pcrs. The last three options are for make verify-build: nothing from earlier
builds, and a base with more in it.`;

export const main = command({
  usage: USAGE,
  options: {
    'app-dir': { type: 'string', default: 'src/apps/weather' },
    name: { type: 'string', default: 'nitro' },
    channel: { type: 'string', default: 'experimental' },
    'extra-lock': { type: 'string', multiple: true, default: [] },
    overlay: { type: 'string', multiple: true, default: [] },
    dir: { type: 'string', default: 'build/image' },
    cache: { type: 'string', default: 'build/packages' },
    out: { type: 'string', default: 'out' },
    fresh: { type: 'boolean', default: false },
  },
  async run({ values }, { io }) {
    const appDir = values['app-dir'];
    if (!/^[a-z0-9_-]+(\/[a-z0-9_-]+)*$/.test(appDir) || !existsSync(join(ROOT, appDir, 'app.yaml'))) {
      throw new ConfigError(`${appDir} is not the folder of an application: it has no app.yaml`);
    }
    const needed = neededByImage(ROOT, appDir);
    const channel = checkChannel(ROOT, values.channel, imageSources(needed, appDir));
    const dir = resolve(values.dir);
    mkdirSync(dir, { recursive: true });
    const context = makeContext(ROOT, dir, appDir);
    const locks = [LOCK, ...values['extra-lock']].map((lock) => join(ROOT, lock));
    await makeBase(locks, join(context, 'base.tar'), resolve(values.cache), values.overlay);

    const output = mkdtempSync(join(dir, 'output-'));
    buildContainer({
      file: join(ROOT, 'Containerfile'),
      context,
      args: { APP_DIR: appDir },
      output,
      fresh: values.fresh,
    });
    const eif = readFileSync(join(output, 'image.eif'));
    const registers = formatPcrs(measureImage(readEif(eif)));
    const target = (name: string) => join(resolve(values.out), name);
    mkdirSync(values.out, { recursive: true });
    copyFileSync(join(output, 'image.eif'), `${target(values.name)}.eif.new`);
    renameSync(`${target(values.name)}.eif.new`, target(`${values.name}.eif`));
    const { version } = JSON.parse(readFileSync(join(ROOT, 'src/server/package.json'), 'utf8'));
    const licenses = licensesOf(await bundle(ROOT, version, appDir, output));
    rmSync(output, { recursive: true });
    writeFileSync(target(`${values.name}.pcrs`), registers);
    writeFileSync(target(values.name === 'nitro' ? 'licenses.txt' : `${values.name}.licenses.txt`), licenses);
    const packages = digestOfModules(readLock(ROOT), needed);
    const measurements = makeMeasurements(ROOT, basename(appDir), channel, LOCK, packages, eif);
    writeFileSync(
      target(values.name === 'nitro' ? 'measurements.json' : `${values.name}.measurements.json`),
      `${JSON.stringify(measurements, null, 2)}\n`,
    );
    const file = `${values.out}/${values.name}.eif`;
    io.log(`${file}, ${(eif.length / 1e6).toFixed(1)} MB\n${registers}`);
    if (isUnchanged(ROOT, LOCK) === false) {
      io.log(`${LOCK} is not the committed one: these registers are not those of the commit.`);
    }
    return { json: { file, bytes: eif.length, measurements } };
  },
});

if (import.meta.main) await runAsProcess(main);
