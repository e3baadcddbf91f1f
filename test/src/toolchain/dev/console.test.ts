import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { consolePort, developmentFiles, startConsole } from '../../../../src/toolchain/dev/console.ts';

/** Starts a console, which closes after the test. @returns also the lines that it logged */
async function startTestConsole(port = 0, files: () => Record<string, string> = () => ({})) {
  const development = () => ({
    command: 'sui-enclave dev',
    started: ['http://127.0.0.1:3000'],
    files: files(),
  });
  const lines: string[] = [];
  const page = startConsole({ port, link: '#/enclave?url=x', development, log: (line) => lines.push(line) });
  onTestFinished(() => page.close());
  await vi.waitUntil(() => lines.length > 0, { timeout: 20_000 });
  const [, url = '', link] = /^Console: {2}(http:\/\/127\.0\.0\.1:\d+\/)(#.*)$/.exec(lines[0] ?? '') ?? [];
  return { lines, url, link };
}

/** Returns the status of a request whose path is sent unchanged. */
async function requestStatus(url: string, path: string, method = 'GET'): Promise<number | undefined> {
  return await new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const sent = request({ hostname, port, path, method }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.on('error', reject).end();
  });
}

describe('the console of a development command', () => {
  test('is a page on loopback with a content security policy, whose address is printed', async () => {
    const { url, link } = await startTestConsole();
    expect(link).toBe('#/enclave?url=x');
    const answer = await fetch(url);
    expect(answer.status).toBe(200);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': expect.stringContaining("frame-ancestors 'none'"),
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    });
    const html = await answer.text();
    const [, script = ''] = /src="\.\/(assets\/[^"]+\.js)"/.exec(html) ?? [];
    expect((await fetch(new URL(script, url))).headers.get('content-type')).toBe(
      'text/javascript; charset=utf-8',
    );
  });

  test('serves only its own files', async () => {
    const { url } = await startTestConsole();
    for (const path of ['/../package.json', '/..%2fpackage.json', '//etc/passwd', '/src', '/assets']) {
      expect([path, await requestStatus(url, path)]).toEqual([path, 404]);
    }
    expect(await requestStatus(url, '/', 'POST')).toBe(405);
    expect(await requestStatus(url, '/?query', 'HEAD')).toBe(200);
  });

  test('offers root and registers as they are at the time of the request', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'console-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const names = ['dev-root.pem', 'dev.pcrs'];
    const { url } = await startTestConsole(0, () => developmentFiles(pathToFileURL(`${folder}/`), names));
    const fetchDevelopment = async () => await (await fetch(new URL('development.json', url))).json();
    expect(await fetchDevelopment()).toEqual({
      command: 'sui-enclave dev',
      started: ['http://127.0.0.1:3000/'],
      files: {},
    });
    writeFileSync(join(folder, 'dev.pcrs'), 'registers');
    expect(await fetchDevelopment()).toMatchObject({ files: { 'dev.pcrs': 'registers' } });
  });

  test('reports that it can not listen, and changes nothing else', async () => {
    const { url } = await startTestConsole();
    const { lines } = await startTestConsole(Number(new URL(url).port));
    expect(lines).toEqual(["The console can't listen on CONSOLE_PORT: EADDRINUSE."]);
    expect((await fetch(url)).status).toBe(200);
  });
});

test('CONSOLE_PORT is a port, by default one that the system chooses', () => {
  expect(consolePort({})).toBe(0);
  expect(consolePort({ CONSOLE_PORT: '4000' })).toBe(4000);
  expect(() => consolePort({ CONSOLE_PORT: '70000' })).toThrow(/CONSOLE_PORT/);
});
