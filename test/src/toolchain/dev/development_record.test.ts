/**
 * The record of `dev` about an emulated enclave is the one that an audit of its commit expects, and is marked
 * as a development record.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { parsePcrs } from '../../../../src/library/attestation/image.ts';
import { DevelopmentTrust } from '../../../../src/testing/development_trust.ts';
import { compareDevelopment } from '../../../../src/toolchain/audit/development.ts';
import { readSource } from '../../../../src/toolchain/audit/source.ts';
import { writeDevelopmentRecord } from '../../../../src/toolchain/dev/development_record.ts';
import { repositoryAt } from '../../../../src/toolchain/project.ts';
import { createdFiles, FRAMEWORK } from '../audit/applications.ts';

let folder: string;
let out: URL;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'development-record-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  out = pathToFileURL(`${join(folder, 'out')}/`);
  for (const [path, content] of Object.entries(createdFiles())) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content as string);
  }
});

function git(...args: string[]): string {
  const identity = ['-c', 'user.name=a', '-c', 'user.email=a@a.example'];
  return execFileSync('git', [...identity, ...args], { cwd: folder, encoding: 'utf8' }).trim();
}

function writeRecord(): { text: string; pcrs: string } {
  const trust = DevelopmentTrust.load(out, 'price');
  trust.save();
  const pcrs = trust.nsm.pcrsFile();
  writeDevelopmentRecord(repositoryAt(folder), { name: 'price', folder }, out, trust.pcrsName, pcrs);
  return { text: readFileSync(join(folder, 'out/dev-price.measurements.json'), 'utf8'), pcrs };
}

test('the record of a commit is the one that an audit of that commit computes', () => {
  git('init', '-q');
  git('add', '-A');
  git('commit', '-q', '-m', 'all');
  const commit = git('rev-parse', 'HEAD');
  const { text, pcrs } = writeRecord();
  expect(JSON.parse(text)).toMatchObject({ application: 'price', channel: 'development', commit });
  const source = readSource({ folder, files: 0, bytes: 0, omitted: [] }, '', FRAMEWORK);
  const measurementsSha256 = createHash('sha256').update(text).digest('hex');
  const namedSource = { url: '', commit, folder: '', frameworkVersion: '', measurementsSha256 };
  const compare = (change: object) => () =>
    compareDevelopment(source, parsePcrs(pcrs), { ...namedSource, ...change });
  expect(compare({})).toThrow(expect.objectContaining({ code: 'DEVELOPMENT_IMAGE' }));
  expect(compare({ commit: '1'.repeat(40) })).toThrow(
    expect.objectContaining({ code: 'MEASUREMENTS_DIFFER' }),
  );
});

test('uncommitted changes, and a missing repository, are recorded', () => {
  expect(JSON.parse(writeRecord().text)).toMatchObject({ commit: null, unchanged_tree: null });
  git('init', '-q');
  git('add', '-A');
  git('commit', '-q', '-m', 'all');
  writeFileSync(join(folder, 'app.ts'), 'changed');
  expect(JSON.parse(writeRecord().text)).toMatchObject({ unchanged_tree: false });
});

test('an application without a lock file has no record', () => {
  rmSync(join(folder, 'package-lock.json'));
  writeDevelopmentRecord(repositoryAt(folder), { name: 'price', folder }, out, 'dev-price.pcrs', '');
  expect(existsSync(join(folder, 'out'))).toBe(false);
});
