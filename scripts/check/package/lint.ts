/** Runs external tools that check a packed package. */
import { readFileSync } from 'node:fs';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';

/** Resolvers that find no entry of a package if its `exports` have only ES modules. */
const OLDER = ['node10', 'node16-cjs'];

/** Entries without types: only the program imports them, and it needs no types. */
const UNTYPED: Readonly<Record<string, string[]>> = { 'sui-enclave-toolchain': ['.'] };

/** Checks a tarball with publint and arethetypeswrong. @returns a line for each mistake */
export async function findMistakes(tarball: string): Promise<string[]> {
  const bytes = new Uint8Array(readFileSync(tarball));
  const { messages, pkg } = await publint({ pack: { tarball: bytes.buffer }, strict: true });
  const relevantMessages = messages.filter(
    ({ code, args }) =>
      // Other packages do not import the sources of images.
      !(code === 'NESTED_PACKAGE_JSON_FIELD_IGNORED' && args.filePath.startsWith('./framework/')),
  );
  const excludeEntrypoints = UNTYPED[pkg['name']] ?? [];
  const analysis = await checkPackage(createPackageFromTarballData(bytes), { excludeEntrypoints });
  // Programs have no types, so their problems do not count.
  const problems = analysis.types === false ? [] : analysis.problems;
  const typeProblems = problems.filter(
    (problem) =>
      !('resolutionKind' in problem && OLDER.includes(problem.resolutionKind)) &&
      !('resolutionOption' in problem && OLDER.includes(problem.resolutionOption)),
  );
  return [
    ...relevantMessages.map((message) => formatMessage(message, pkg, { color: false }) ?? message.code),
    ...typeProblems.map((problem) => JSON.stringify(problem)),
  ];
}
