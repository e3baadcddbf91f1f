/**
 * `sui-enclave gen [application]`: writes the files that a contract and a dapp need for the types that an
 * application signs.
 */
import { join, resolve } from 'node:path';
import { command, runAsProcess, UsageError } from 'sui-enclave-cli/command';
import { path, text } from 'sui-enclave-cli/values';
import { findProject, type Project } from '../project.ts';
import { generate } from './generate.ts';
import { writeGenerated } from './generated_file.ts';

/**
 * Returns the generated files of an application, in its folder and in its Move package.
 *
 * @param name of the application. An author's repository has one application, which needs no name
 * @param move folder of the Move package. Default: `move/<name>`
 * @throws UsageError if no application of a clone is named; ConfigError for an unknown application; errors of
 *   `generate`
 */
export async function generatedFiles(
  project: Project,
  name: string | undefined,
  move: string | undefined,
): Promise<ReadonlyMap<string, string>> {
  if (project.isClone && name === undefined) {
    throw new UsageError('missing: <application>');
  }
  const application = project.application(name);
  return await generate(application, resolve(move ?? join(project.root, 'move', application.name)));
}

export const main = command({
  name: 'gen',
  purpose: `From the types that an application signs, writes Move structs with their intents (sources/signed.move), tests of their
bytes (tests/signed_vectors.move), modules for dapps, Python and Go (generated/client.ts, signed.py, signed.go), and the
bytes of some values (generated/vectors.json). It replaces only files that it wrote itself, and that were not edited
since.`,
  example: '--check',
  arguments: { application: { schema: text, optional: true } },
  options: {
    move: {
      value: '<folder>',
      help: 'the Move package; default: move/<application>',
      schema: path,
    },
    check: { help: 'write nothing, and fail if a file is out of date' },
  },
  notes:
    'without a name: the application of this repository; in a clone of sui-enclave, the name is required\nexit codes: 0 written, or equal; 1 refused, or a file differs; 2 invalid command line',
  async run({ args: { application }, options: { move, check } }) {
    const files = await generatedFiles(findProject(), application, move);
    const written = writeGenerated(files, check);
    const text = written.length > 0 ? written.join('\n') : 'nothing changed';
    return { json: { files: [...files.keys()], written }, text };
  },
});

if (import.meta.main) await runAsProcess(main);
