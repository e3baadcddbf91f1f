/**
 * Runs the commands of deploy/https/README.md as an operator does on a host. HAProxy runs as a unit, and gets
 * its certificate from Pebble, Let's Encrypt's ACME server for tests.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { makeTls } from '../../../src/testing/tls.ts';
import { CERTIFICATE, START } from '../../https_page.ts';
import { findObstacle, Machine, until } from './machine.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const CERTBOT = 'build/certbot/bin/certbot';
const missing = [
  ...['/usr/sbin/haproxy', '/usr/bin/pebble', join(ROOT, CERTBOT)].filter((file) => !existsSync(file)),
  ...(findObstacle() === undefined ? [] : ['machine']),
];
const NODE = '/opt/sui-enclave/node_modules/.bin/node';
const NAME = 'enclaves.example';
const FOLDER = '/etc/sui-enclave-https';

/** Program that answers at the relay's port in place of an enclave. It returns the caller's address. */
const ENCLAVE = `http.createServer((request, response) =>
  response.end(request.headers['x-forwarded-for'])).listen(3000, '127.0.0.1')`;
const ASK = `const socket = tls.connect({ port: 443, servername: '${NAME}', rejectUnauthorized: false }, () => {
  const { serialNumber, subject, issuer } = socket.getPeerCertificate();
  socket.write('GET /readyz HTTP/1.1\\r\\nHost: ${NAME}\\r\\nConnection: close\\r\\n\\r\\n');
  let answer = '';
  socket.on('data', (data) => answer += data).on('end', () =>
    console.log(JSON.stringify({ answer, serialNumber, subject: subject?.CN, issuer: issuer.CN })));
});`;

interface Served {
  readonly answer: string;
  readonly serialNumber: string;
  readonly subject?: string;
  readonly issuer: string;
}

test.skipIf(missing.length > 0)(
  missing.length > 0
    ? `the HTTPS recipe (skipped: no ${missing.join(', ')})`
    : "the page's commands start HAProxy and obtain a certificate; its units reload HAProxy and renew the certificate",
  async () => {
    const machine = new Machine();
    onTestFinished(() => machine.close());
    await machine.boot();
    const write = (path: string, text: string) => {
      mkdirSync(join(machine.path(path), '..'), { recursive: true });
      writeFileSync(machine.path(path), text, { mode: 0o755 });
    };
    const startService = (name: string, ...command: string[]) =>
      machine.mustRun('systemd-run', '--quiet', `--unit=${name}`, ...command);
    const ask = (): Served => JSON.parse(machine.mustRun(NODE, '-e', ASK));
    const tryAsking = () => machine.run(NODE, '-e', ASK).stdout;

    startService('enclave', NODE, '-e', ENCLAVE);
    machine.mustRun('sh', '-ec', `cd /opt/sui-enclave/deploy/https\n${START}`);
    await until('the enclave answers', () => /200 OK/.test(tryAsking()));
    expect(ask()).toMatchObject({
      answer: expect.stringMatching(/\r\n\r\n127\.0\.0\.1$/),
      issuer: 'first',
    });
    expect(
      machine.mustRun('stat', '-c', '%a %U', `${FOLDER}/certificate.pem`, '/run/haproxy-admin.sock'),
    ).toBe('600 root\n600 root\n');
    // The process of `haproxy` serves callers. The process of `root` waits for signals.
    const listUsers = () => machine.mustRun('ps', '-o', 'user=', '-C', 'haproxy').trim().split('\n').sort();
    expect(listUsers()).toEqual(['haproxy', 'root']);

    const { ca, cert, key } = makeTls(['localhost']);
    for (const [file, pem] of Object.entries({ ca, cert, key })) write(`var/pebble/${file}.pem`, pem);
    const config = {
      listenAddress: '127.0.0.1:14000',
      managementListenAddress: '127.0.0.1:15000',
      certificate: '/var/pebble/cert.pem',
      privateKey: '/var/pebble/key.pem',
      httpPort: 80,
      tlsPort: 443,
    };
    write('var/pebble/config.json', JSON.stringify({ pebble: config }));
    write('etc/hosts', `127.0.0.1 localhost ${NAME}\n`);
    startService(
      'pebble',
      '--setenv=PEBBLE_VA_NOSLEEP=1',
      '/usr/bin/pebble',
      '-config',
      '/var/pebble/config.json',
    );
    write('etc/letsencrypt/cli.ini', 'server = https://localhost:14000/dir\nno-verify-ssl = true\n');
    // In place of the page's certbot, this script runs the one that `make` has installed.
    const program = `/opt/sui-enclave/build/certbot/bin/python3 /opt/sui-enclave/${CERTBOT}`;
    write('opt/sui-enclave-certbot/bin/certbot', `#!/bin/sh\nexec ${program} "$@"\n`);
    // The Python that `make` has found may be in a home directory.
    const home = '[Service]\nProtectHome=read-only\n';
    write('etc/systemd/system/sui-enclave-certificate.service.d/home.conf', home);
    machine.mustRun('systemctl', 'daemon-reload');
    machine.mustRun('sh', '-ec', CERTIFICATE);
    const issued = ask();
    expect(issued).toMatchObject({
      answer: expect.stringMatching(/200 OK/),
      issuer: expect.stringMatching(/^Pebble/),
    });
    expect(machine.mustRun('systemctl', 'is-active', 'sui-enclave-certificate.timer')).toBe('active\n');

    const renew = () => machine.mustRun('systemctl', 'start', 'sui-enclave-certificate');
    renew();
    expect(ask().serialNumber).toBe(issued.serialNumber);
    write(
      'etc/letsencrypt/cli.ini',
      'server = https://localhost:14000/dir\nno-verify-ssl = true\nforce-renewal = true\n',
    );
    renew();
    const renewed = ask();
    expect(renewed.serialNumber).not.toBe(issued.serialNumber);

    machine.mustRun('haproxy_command', 'set server enclaves/old state maint');
    expect(ask().answer).toMatch(/ 503 /);
    machine.mustRun('systemctl', 'reload', 'sui-enclave-https');
    await until('the enclave answers', () => /200 OK/.test(tryAsking()));
    expect(ask().serialNumber).toBe(renewed.serialNumber);
    machine.mustRun('haproxy_command', 'set server enclaves/old state ready');
    await until('the earlier process has ended', () => listUsers().length === 2);
    write(`${FOLDER}/haproxy.env`, 'ALB="10.0.0.0/8 127.0.0.0/8"\n');
    machine.mustRun('systemctl', 'restart', 'sui-enclave-https');
    await until('the enclave answers', () => /200 OK/.test(tryAsking()));
    expect(ask().answer).toMatch(/\r\n\r\n127\.0\.0\.1, 127\.0\.0\.1$/);
    writeFileSync(machine.path(`${FOLDER}/enclaves.cfg`), 'nonsense');
    expect(machine.run('systemctl', 'reload', 'sui-enclave-https').status).not.toBe(0);
    expect(ask().answer).toMatch(/200 OK/);
    expect(machine.mustRun('journalctl', '-u', 'sui-enclave-*')).not.toMatch(/PRIVATE|denied|Permission/);
  },
);
