/** Errors of the published library: each cause has one code, and each area one class. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, expectTypeOf, test } from 'vitest';
import * as attestation from '../../../src/library/attestation/index.ts';
import * as client from '../../../src/library/client/index.ts';
import { CodedError } from '../../../src/library/errors.ts';
import * as release from '../../../src/library/release/index.ts';
import * as sui from '../../../src/library/sui/index.ts';
import * as wallet from '../../../src/library/wallet/index.ts';
import * as zklogin from '../../../src/library/zklogin/index.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const ENTRIES = { attestation, client, release, sui, wallet, zklogin };
const AREAS = [
  { name: 'attestation', base: attestation.AttestationError, codes: attestation.ATTESTATION_CODES },
  { name: 'client', base: client.ClientError, codes: client.CLIENT_CODES },
  { name: 'release', base: release.ReleaseError, codes: release.RELEASE_CODES },
  { name: 'sui', base: sui.SuiError, codes: sui.SUI_CODES },
  { name: 'zklogin', base: zklogin.ZkLoginError, codes: zklogin.ZKLOGIN_CODES },
];

function isErrorClass(value: unknown): value is typeof Error {
  return typeof value === 'function' && value.prototype instanceof Error;
}

test('a name has the same meaning in every entry that exports it', () => {
  const seen = new Map<string, unknown>();
  for (const [name, value] of Object.values(ENTRIES).flatMap((entry) => Object.entries(entry))) {
    if (seen.has(name)) expect([name, seen.get(name)]).toEqual([name, value]);
    seen.set(name, value);
  }
});

test('a code occurs in one table only', () => {
  const codes = AREAS.flatMap((area) => Object.keys(area.codes));
  expect(new Set(codes).size).toBe(codes.length);
});

test('a switch over the code is checked by the compiler', () => {
  const error = new client.ClientError('CLIENT_INTENT', 'for the types');
  expectTypeOf(error.code).toEqualTypeOf<client.ClientCode>();
  // @ts-expect-error: a code of another area
  new client.ClientError('SUI_VALUE', 'for the types');
});

describe.each(AREAS)('the entry $name', ({ name, base, codes }) => {
  // The errors of wallets belong to zkLogin.
  const folders = name === 'zklogin' ? '{zklogin,wallet}' : name;
  const source = globSync(`src/library/${folders}/*.ts`, { cwd: ROOT })
    .map((file) => readFileSync(`${ROOT}${file}`, 'utf8'))
    .join('\n');

  test('has one class for instanceof, and the names of all its errors end in Error', () => {
    expect(Object.getPrototypeOf(base)).toBe(CodedError);
    const exported = Object.entries(ENTRIES[name as keyof typeof ENTRIES]);
    const errors = exported.flatMap(([key, value]) => (isErrorClass(value) ? [[key, value] as const] : []));
    expect(errors.length).toBeGreaterThan(1);
    for (const [key, value] of errors) {
      expect(key).toMatch(/Error$/);
      // The client also exports errors that its attestation throws.
      const isOwn = (value as unknown) === base || value.prototype instanceof base;
      expect([isOwn, key]).toEqual([key !== 'AttestationError' || name === 'attestation', key]);
    }
  });

  test('throws every code of its table, and explains it', () => {
    for (const [code, meaning] of Object.entries(codes)) {
      expect(source.split(`'${code}'`).length, code).toBeGreaterThan(1);
      expect(meaning).toMatch(/^.+\.$/);
    }
  });

  test('lists every code in its README', () => {
    const readme = readFileSync(`${ROOT}src/library/${name}/README.md`, 'utf8');
    for (const code of Object.keys(codes)) expect(readme).toContain(`\`${code}\``);
  });
});
