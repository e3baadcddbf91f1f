/**
 * Refuses the phrases that CONTRIBUTING.md, "Names and sentences", excludes from comments, texts and pages,
 * and comments that are wider than the code.
 */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const FILES = globSync(
  [
    '*.md',
    '{deploy,enclave,move,examples,scripts,src,test}/**/*.{ts,tsx,cjs,md,cc,h,go,move,sh,yml}',
    'src/create/templates/**/*.txt',
  ],
  {
    cwd: ROOT,
    exclude: [
      '**/{node_modules,generated,dist,build}/**',
      // The rules quote the phrases that they exclude, and the changelog keeps the words of its time.
      '{CONTRIBUTING,CHANGELOG}.md',
      'test/words.test.ts',
      // The digest of a development key, and thus of everything that it proves, depends on the text of these
      // files.
      'src/prover/native/internal/iden3/zkey.go',
      'src/toolchain/prover/artifacts.ts',
      // PCR1 measures these files.
      'enclave/init/**',
    ],
  },
);
const EXCLUDED = /\b(?:whoever|goes on|went on|(?:is|are) to be|so too|is no [a-z]+ (?:and|or) no)\b/i;
/** Maximum width of a line, in columns, as in .editorconfig. */
const MAX_COLUMNS = 110;

const readLines = (file: string) => readFileSync(new URL(file, `file://${ROOT}`), 'utf8').split('\n');

test('no comment, text or page has an excluded phrase', () => {
  expect(FILES.length).toBeGreaterThan(1000);
  const lines = FILES.flatMap((file) =>
    readLines(file).flatMap((line, index) => (EXCLUDED.test(line) ? [`${file}:${index + 1}: ${line}`] : [])),
  );
  expect(lines).toEqual([]);
});

test('no comment of TypeScript is wider than a line of code', () => {
  // The docs of a Move module in a literal, which begin with three slashes, do not count.
  const isWide = (line: string) =>
    line.length > MAX_COLUMNS && /^\s*(?:\/\/(?!\/| biome-ignore)|\/?\*)/.test(line);
  const lines = FILES.filter((file) => /\.tsx?$/.test(file)).flatMap((file) =>
    readLines(file).flatMap((line, index) => (isWide(line) ? [`${file}:${index + 1}: ${line}`] : [])),
  );
  expect(lines).toEqual([]);
});
