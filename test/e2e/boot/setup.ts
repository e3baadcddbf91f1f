/** Prepares what the boot tests need besides the images: the emulator and the vsock backend. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { findEmulator } from './emulator.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    emulator: string;
    vsockHost: string;
  }
}

export default async function setup(project: TestProject): Promise<void> {
  for (const image of ['out/nitro.eif', 'out/test.eif', 'out/test-salt.eif']) {
    if (!existsSync(image)) throw new Error(`${image} is missing: make test-boot builds it`);
  }
  const cache = process.env['CACHE'];
  if (!cache) throw new Error('CACHE must name a folder: make test-boot sets it');
  const vsockHost = join(process.cwd(), 'build/test/vsock_host');
  mkdirSync('build/test', { recursive: true });
  const sources = ['device.cc', 'main.cc'].map((name) => join('test/e2e/boot/vsock_host', name));
  const flags = ['-std=c++20', '-O2', '-Wall', '-Wextra', '-Werror'];
  execFileSync(process.env['CXX'] ?? 'c++', [...flags, ...sources, '-o', vsockHost], { stdio: 'inherit' });
  project.provide('emulator', await findEmulator(cache));
  project.provide('vsockHost', vsockHost);
}
