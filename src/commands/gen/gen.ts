/** `sui-enclave gen <application>`: writes what a contract and a dapp need of the types that an application signs. */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError } from 'sui-enclave/errors';
import { command, runAsProcess } from '../command.ts';
import { path, text } from '../values.ts';
import { generate } from './generate.ts';
import { writeGenerated } from './generated_file.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

export const main = command({
  name: 'gen',
  purpose: `Writes the types that an application signs as Move structs with their intents (sources/signed.move) and the tests of
their bytes (tests/signed_vectors.move), as a module for dapps (generated/client.ts), and the bytes of some values
(generated/vectors.json). Only files that it wrote itself, and that nobody edited since, are replaced.`,
  arguments: { application: { schema: text } },
  options: {
    move: {
      value: '<folder>',
      help: 'the Move package; default: move/<application>',
      schema: path,
    },
    check: { help: 'write nothing, and fail if a file is not what would be written' },
  },
  notes: 'exit codes: 0 written, or equal; 1 refused, or a file differs; 2 invalid command line',
  async run({ args: { application }, options: { move, check } }) {
    const folder = join(ROOT, 'src/apps', application);
    if (!existsSync(join(folder, 'app.yaml'))) {
      throw new ConfigError(`there is no application ${application} in src/apps`);
    }
    const files = await generate(
      folder,
      move === undefined ? join(ROOT, 'move', application) : resolve(move),
    );
    const written = writeGenerated(files, check);
    const text = written.length > 0 ? written.join('\n') : 'nothing changed';
    return { json: { files: [...files.keys()], written }, text };
  },
});

if (import.meta.main) await runAsProcess(main);
