import { describe, expect, onTestFinished, test } from 'vitest';
import { ConfigError } from '../../../../src/library/errors.ts';
import {
  formatManifest,
  parseManifest,
  parseManifestJson,
} from '../../../../src/server/application/manifest.ts';
import { makeTls } from '../../../../src/testing/tls.ts';
import { newProvisioner } from '../provisioner.ts';

describe('app.yaml', () => {
  test('names endpoints and secrets', () => {
    expect(parseManifest('endpoints: [api.weatherapi.com]\nsecrets: [API_KEY]')).toEqual({
      endpoints: ['api.weatherapi.com'],
      secrets: ['API_KEY'],
    });
  });

  test('has at most 64 KiB, and its size is checked before it is parsed', () => {
    const plain = 'endpoints: []\nsecrets: []\n';
    const padded = (bytes: number) => `${plain}# ${'é'.repeat((bytes - plain.length - 2) / 2)}`;
    expect(parseManifest(padded(64 * 1024)).secrets).toEqual([]);
    expect(() => parseManifest(padded(64 * 1024 + 2))).toThrow(/more than 65536 bytes/);
    const names = Array.from({ length: 50_000 }, (_, at) => `a${at}: []`);
    expect(() => parseManifest(names.join('\n'))).toThrow(ConfigError);
  });

  test.each([
    ['a custom tag', 'endpoints: []\nsecrets:\n  - !\u001b[2J A'],
    ['a tag for a whole map', '!x\nendpoints: []\nsecrets: []'],
    ['another version of YAML', '%YAML 9.9\n---\nendpoints: []\nsecrets: []'],
    ['a second document', 'endpoints: []\nsecrets: []\n---\nendpoints: [a.example]'],
    ['a list for a key', 'endpoints: []\nsecrets: []\n? [a]\n: b'],
  ])('with %s is refused, and nothing is printed', async (_name, yaml) => {
    const warnings: Error[] = [];
    const collect = (warning: Error) => warnings.push(warning);
    process.on('warning', collect);
    onTestFinished(() => void process.off('warning', collect));
    expect(() => parseManifest(yaml)).toThrow(ConfigError);
    await new Promise(setImmediate);
    expect(warnings).toEqual([]);
  });

  const withEvents = (events: string) => `endpoints: []\nsecrets: []\nevents: ${events}`;

  test('may declare events with the names of their fields', () => {
    expect(parseManifest(withEvents('{price_stale: [age_ms], swept: []}')).events).toEqual({
      price_stale: ['age_ms'],
      swept: [],
    });
    expect(Object.keys(parseManifest(withEvents('{constructor: [], prototype: [a]}')).events ?? {})).toEqual([
      'constructor',
      'prototype',
    ]);
    expect(parseManifest(withEvents('{}'))).not.toHaveProperty('events');
  });

  test.each([
    ['a name in upper case', '{Stale: []}'],
    ['a name that is too long', `{${'a'.repeat(33)}: []}`],
    ['a field in upper case', '{stale: [Age]}'],
    ['a field twice', '{stale: [age, age]}'],
    ['a field that every event has', '{stale: [request_id]}'],
    ['a field that is added when the event is exported', '{stale: [enclave]}'],
    ['nine fields', '{stale: [a, b, c, d, e, f, g, h, i]}'],
    ['a field with a type', '{stale: [{age: number}]}'],
    ['seventeen events', `{${Array.from({ length: 17 }, (_, at) => `e${at}: []`).join(', ')}}`],
    ['a list', '[stale]'],
  ])('rejects events with %s', (_name, events) => {
    expect(() => parseManifest(withEvents(events))).toThrow(/^app\.yaml, events/);
  });

  const { ca, cert } = makeTls(['api.example.com']);
  const entry = (pem: string) => `\n  - host: b.example\n    ca: |\n${pem.replace(/^/gm, '      ')}`;
  const pinned = (pem: string) => `endpoints:\n  - a.example${entry(pem)}\nsecrets: []`;

  test('may pin an endpoint to certificate authorities', () => {
    for (const pem of [ca, `# ours\n${ca}`, ca + makeTls(['x.example']).ca]) {
      const { endpoints, authorities } = parseManifest(pinned(pem.trimEnd()));
      expect(endpoints).toEqual(['a.example', 'b.example']);
      expect(Object.keys(authorities ?? {})).toEqual(['b.example']);
      expect(authorities?.['b.example']?.trim()).toBe(pem.trim());
    }
  });

  test.each([
    ['no certificate', 'ca.pem'],
    ['nothing', '""'],
    ['an invalid certificate', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----'],
    ['a certificate that is cut off', ca.slice(0, -30)],
    ['a certificate that is not of an authority', cert],
    [
      'an authority and another kind of PEM',
      `${ca}-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----`,
    ],
    [
      'an authority and an invalid certificate',
      `${ca}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----`,
    ],
  ])('a pin to %s is rejected, naming the property', (_name, pem) => {
    expect(() => parseManifest(pinned(pem))).toThrow(ConfigError);
    expect(() => parseManifest(pinned(pem))).toThrow(
      /^app\.yaml, endpoints\.1\.ca: must be one or more CA certificates/,
    );
  });

  /** Keys of RFC 8032, section 7.1, TEST 1 and TEST 2. */
  const KEY = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';
  const KEY_2 = '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c';
  const provisioned = (list: string) => `endpoints: []\nsecrets: [A]\nprovisioners: ${list}`;

  test('may name provisioners', () => {
    expect(parseManifest(provisioned(`[${KEY}, "${KEY_2}"]`)).provisioners).toEqual([KEY, KEY_2]);
    expect(parseManifest(provisioned('[]'))).not.toHaveProperty('provisioners');
  });

  test.each([
    ['of 31 bytes', KEY.slice(2)],
    ['in upper case', KEY.toUpperCase()],
    ['in base64', Buffer.from(KEY, 'hex').toString('base64')],
    ['that is a number', '1'.repeat(64)],
    ['that is not a point', `02${'00'.repeat(31)}`],
    // Anyone can sign for these keys.
    ['of order 1', `"01${'00'.repeat(31)}"`],
    ['of order 2', `ec${'ff'.repeat(30)}7f`],
    ['of order 4', `"${'00'.repeat(32)}"`],
    ['of order 8', 'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a'],
    ['of order 1 in another encoding', `ee${'ff'.repeat(30)}7f`],
  ])('a provisioner %s is rejected', (_name, key) => {
    expect(() => parseManifest(provisioned(`[${KEY_2}, ${key}]`))).toThrow(
      /^app\.yaml, provisioners\.1: .*ed25519/,
    );
  });

  test('names a folder of files once, and at most 16 folders', () => {
    const withFolders = (count: number) =>
      `endpoints: []\nsecrets: []\nfiles: [${Array.from({ length: count }, (_, index) => `folder${index}`)}]\n`;
    expect(parseManifest(withFolders(16)).files).toHaveLength(16);
    expect(() => parseManifest(withFolders(17))).toThrow(/^app\.yaml, files: /);
    expect(() => parseManifest('endpoints: []\nsecrets: []\nfiles: [a, a]\n')).toThrow(/^app\.yaml, files: /);
  });

  test('names a provisioner once, and at most 16 provisioners', () => {
    expect(() => parseManifest(provisioned(`[${KEY}, ${KEY}]`))).toThrow(/^app\.yaml, provisioners: /);
    const points = Array.from({ length: 17 }, () => newProvisioner().hex);
    expect(
      parseManifest(provisioned(`[${points.slice(1).map((key) => `"${key}"`)}]`)).provisioners,
    ).toHaveLength(16);
    expect(() => parseManifest(provisioned(`[${points.map((key) => `"${key}"`)}]`))).toThrow(
      /^app\.yaml, provisioners: /,
    );
  });

  test.each([
    ['', 'top level'],
    ['endpoints: [{host: a.example}]\nsecrets: []', 'endpoints.0'],
    ['endpoints: [{host: a.example, ca: 5}]\nsecrets: []', 'endpoints.0'],
    ['endpoints: [{host: a.example, ca: x, port: 1}]\nsecrets: []', 'endpoints.0'],
    [`endpoints:\n  - b.example${entry(ca.trimEnd())}\nsecrets: []`, 'endpoints'],
    ['endpoints: [a.b', 'not YAML'],
    ['endpoints: []', 'secrets'],
    ['endpoints: []\nsecrets: []\nendpoint: []', 'endpoint'],
    ['endpoints: [https://a.example]\nsecrets: []', 'endpoints.0'],
    ['endpoints: [a.example, "b.example:8443"]\nsecrets: []', 'endpoints.1'],
    ['endpoints: [localhost]\nsecrets: []', 'endpoints.0'],
    ['endpoints: [A.example]\nsecrets: []', 'endpoints.0'],
    ['endpoints: ["*.example.com"]\nsecrets: []', 'endpoints.0'],
    ['endpoints: [a.example, a.example]\nsecrets: []', 'endpoints'],
    ['endpoints: []\nsecrets: [api_key]', 'secrets.0'],
    ['endpoints: []\nsecrets: ["A B"]', 'secrets.0'],
    ['endpoints: []\nsecrets: [A]\nendpoints: [a.example]', 'not YAML'],
  ])('%o is rejected, naming the property', (yaml, place) => {
    expect(() => parseManifest(yaml)).toThrow(ConfigError);
    expect(() => parseManifest(yaml)).toThrow(place);
  });
});

describe('app.json', () => {
  const { ca } = makeTls(['api.example.com']);
  const indented = ca.trimEnd().replace(/^/gm, '      ');
  const KEY = newProvisioner().hex;
  const full = `name: dice
endpoints: # ours
  - a.example
  - host: b.example
    ca: |
${indented}
secrets: [A, B]
provisioners: ["${KEY}"]
plain: true
events: {zero: [b, a], constructor: []}
files: [public, views/en]
`;

  test.each([
    ['only the required properties', 'endpoints: []\nsecrets: []'],
    ['all properties', full],
    ['empty lists', 'endpoints: []\nsecrets: []\nprovisioners: []\nevents: {}\nfiles: []'],
  ])('has the content of app.yaml: %s', (_name, yaml) => {
    const manifest = parseManifest(yaml);
    expect(parseManifestJson(formatManifest(manifest))).toEqual(manifest);
  });

  test('has its properties in a fixed order, and events with their fields in the order of app.yaml', () => {
    const json = `{"name":"dice","endpoints":["a.example",{"host":"b.example","ca":${JSON.stringify(ca)}}],"secrets":["A","B"],"provisioners":["${KEY}"],"plain":true,"events":{"zero":["b","a"],"constructor":[]},"files":["public","views/en"]}\n`;
    expect(formatManifest(parseManifest(full))).toBe(json);
    const reordered = 'secrets: [A]\nplain: true\nendpoints: []\nname: dice\n# a comment\n';
    expect(formatManifest(parseManifest(reordered))).toBe(
      '{"name":"dice","endpoints":[],"secrets":["A"],"plain":true}\n',
    );
  });

  test('can be read even if aliases make it larger than app.yaml may be', () => {
    const note = `# ${'x'.repeat(50_000)}`;
    const first = `\n  - host: a.example\n    ca: &ca |\n${`${note}\n${ca}`.trimEnd().replace(/^/gm, '      ')}`;
    const endpointLines = Array.from({ length: 63 }, (_, at) => `\n  - {host: b${at}.example, ca: *ca}`);
    const json = formatManifest(parseManifest(`endpoints:${first}${endpointLines.join('')}\nsecrets: []`));
    expect(json.length).toBeGreaterThan(64 * 50_000);
    expect(parseManifestJson(json).endpoints).toHaveLength(64);
  });

  test.each([
    ['YAML', 'endpoints: []\nsecrets: []\n', 'not JSON'],
    ['nothing', '', 'not JSON'],
    ['another property', '{"endpoints":[],"secrets":[],"endpoint":[]}\n', /^app\.json, endpoint:/],
    ['an invalid host', '{"endpoints":["localhost"],"secrets":[]}\n', /^app\.json, endpoints\.0:/],
    [
      'a pin to a text that is not a certificate',
      '{"endpoints":[{"host":"a.example","ca":"x"}],"secrets":[]}\n',
      /^app\.json, endpoints\.0\.ca:/,
    ],
    ['a name twice', '{"endpoints":["a.example"],"endpoints":[],"secrets":[]}\n', 'not in the form'],
    ['another order', '{"secrets":[],"endpoints":[]}\n', 'not in the form'],
    ['spaces', '{"endpoints": [],"secrets":[]}\n', 'not in the form'],
    ['an escape', '{"endpoints":[],"secrets":["\\u0041"]}\n', 'not in the form'],
    ['no end of line', '{"endpoints":[],"secrets":[]}', 'not in the form'],
    ['too many bytes', `{"endpoints":[],"secrets":[]}${' '.repeat(64 * 64 * 1024)}\n`, 'more than 4194304'],
  ])('with %s is refused', (_name, json, message) => {
    expect(() => parseManifestJson(json)).toThrow(ConfigError);
    expect(() => parseManifestJson(json)).toThrow(message);
  });
});
