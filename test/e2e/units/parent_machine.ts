/** Machine that is a parent instance, with fakes of nitro-cli and of vsock, and the commands of hosts. */
import { chmodSync, copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { measureImage } from '../../../src/cli/image/eif/measure.ts';
import { readEif } from '../../../src/cli/image/eif/read.ts';
import { formatPcrs } from '../../../src/library/attestation/image.ts';
import { writeImage } from '../../src/cli/parent/fakes.ts';
import { Machine, type Output, until } from './machine.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const PROGRAM = [
  '/opt/sui-enclave/node_modules/.bin/node',
  '/opt/sui-enclave/src/cli/main.ts',
] as const;
/** The first bytes of the addresses that represent CIDs: test/enclave/vsock_stand_in.cc. */
export const VSOCK_NET = '127.9.9';
/** Settings of the fake of vsock. */
const NETWORK = `Environment=VSOCK_NET=${VSOCK_NET} ASAN_OPTIONS=detect_leaks=0`;
const NO_SECRETS = 'endpoints: []\nsecrets: []\n';

export class ParentMachine extends Machine {
  /** Writes a file of the machine, and the folders above it. */
  write(path: string, text: string, mode?: number): void {
    mkdirSync(join(this.path(path), '..'), { recursive: true });
    writeFileSync(this.path(path), text, { mode });
  }

  /** Installs the files of AWS's package, and the fake of vsock. */
  prepare(): void {
    // A process of nitro-cli has this name in its arguments.
    symlinkSync('/opt/sui-enclave/test/e2e/units/nitro_cli.ts', this.path('usr/local/lib/nitro-cli'));
    this.write('usr/local/bin/nitro-cli', `#!/bin/sh\nexec ${PROGRAM[0]} /usr/local/lib/nitro-cli "$@"\n`);
    chmodSync(this.path('usr/local/bin/nitro-cli'), 0o755);
    this.mustRun('groupadd', '--system', 'ne');
    this.write(
      'etc/tmpfiles.d/nitro.conf',
      'd /run/nitro_enclaves 0775 root ne\nc /dev/nitro_enclaves 0660 root ne - 1:3\n',
    );
    this.mustRun('systemd-tmpfiles', '--create', '/etc/tmpfiles.d/nitro.conf');
    this.write(
      'etc/systemd/system/sui-enclave@.service.d/test.conf',
      `[Service]\n${NETWORK}\nRestrictAddressFamilies=AF_INET\nRestartSec=200ms\n[Unit]\nStartLimitBurst=4\n`,
    );
    for (const unit of ['sui-enclave-relay.service', 'sui-enclave-expose@.service']) {
      this.write(`etc/systemd/system/${unit}.d/test.conf`, `[Service]\n${NETWORK}\n`);
    }
  }

  /** Creates a folder with an image, and with the registers and the relay that a build puts beside it. */
  build(folder: string, manifest = NO_SECRETS, serverEnv = ''): { eif: string; pcr0: string } {
    const dir = this.path(`var/tmp/${folder}`);
    mkdirSync(dir);
    const image = writeImage(join(dir, 'nitro.eif'), manifest, serverEnv);
    const registers = measureImage(readEif(readFileSync(image)));
    writeFileSync(join(dir, 'nitro.pcrs'), formatPcrs(registers));
    copyFileSync(join(ROOT, 'build/test/relay'), join(dir, 'relay'));
    return { eif: `/var/tmp/${folder}/nitro.eif`, pcr0: registers.pcr0 };
  }

  /** Installs an enclave's units. The fake of vsock uses loopback addresses other than 127.0.0.1. */
  install(name: string, eif: string, port: number, ...furtherOptions: string[]): Output {
    const options = ['--eif', eif, '--address', '127.0.0.1', '--port', String(port), ...furtherOptions];
    return this.run(...PROGRAM, 'host', 'install', name, ...options);
  }

  isActive(unit: string): string {
    return this.run('systemctl', 'is-active', unit).stdout.trim();
  }

  show(unit: string, property: string): string {
    return this.mustRun('systemctl', 'show', '--value', '--property', property, unit).trim();
  }

  /** Returns the output of the commands of a unit. */
  readOutput(unit: string): string {
    const options = ['--quiet', '--output=cat', '--identifier=node', '--unit', unit];
    return this.run('journalctl', ...options).stdout;
  }

  /** Returns the answer at a path of a port, or an empty text if there is none. */
  get(port: number, path = ''): string {
    return this.run('curl', '--silent', `http://127.0.0.1:${port}/${path}`).stdout;
  }

  /** Waits for the key of the enclave behind a port, which each start replaces. */
  async waitForKey(port: number, isNew: (key: string) => boolean = () => true): Promise<string> {
    let key = '';
    await until(`port ${port} answers`, () => {
      key = this.get(port);
      return key !== '' && isNew(key);
    });
    return key;
  }
}
