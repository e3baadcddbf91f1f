import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { decode, encode } from 'cborg';
import { describe, expect, test } from 'vitest';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';

const AT = Date.parse('2025-04-15T02:25:23.696Z');

interface Answer {
  Attestation: { document: Uint8Array };
  DescribePCR: { lock: boolean; data: Uint8Array };
  ExtendPCR: { data: Uint8Array };
}

async function ask(nsm: EmulatedNsm, request: unknown): Promise<Answer> {
  return decode(await nsm.transact(encode(request)));
}

interface Payload {
  pcrs: Map<number, Uint8Array>;
  certificate: Uint8Array;
  cabundle: [root: Uint8Array, ...authorities: Uint8Array[]];
}

async function attest(nsm: EmulatedNsm, args: Record<string, unknown> = {}): Promise<Payload> {
  const { Attestation } = await ask(nsm, { Attestation: args });
  const [, , payload] = decode(Attestation.document, { useMaps: true });
  return Object.fromEntries(decode(payload, { useMaps: true })) as unknown as Payload;
}

describe('requests recorded from an emulated NSM', () => {
  // Each request in the file is a hexadecimal line after REQ. Only answers without secrets are complete
  // there.
  const recordedExchanges = readFileSync(new URL('../../vectors/nsm-shapes.txt', import.meta.url), 'utf8')
    .split('\n\n')
    .flatMap((entry) => {
      const request = /^REQ ([0-9a-f]+) /m.exec(entry)?.[1];
      const answer = /^RES len=\d+ used=\d+ ([0-9a-f]+)$/m.exec(entry)?.[1];
      return request === undefined || answer === undefined ? [] : [{ request, answer }];
    });

  test('get the recorded answers, in order and byte for byte, except for the value of register 0', async () => {
    const nsm = new EmulatedNsm();
    const answers: string[] = [];
    for (const { request } of recordedExchanges) {
      answers.push(Buffer.from(await nsm.transact(Buffer.from(request, 'hex'))).toString('hex'));
    }
    expect(recordedExchanges).toHaveLength(12);
    const differing = answers.flatMap((answer, index) =>
      answer === recordedExchanges[index]?.answer ? [] : [index],
    );
    // Only the value of register 0 differs, which measured an image in the recording.
    expect(differing).toEqual([0]);
    expect(recordedExchanges[0]?.request).toBe('a16b4465736372696265504352a165696e64657800');
  });
});

describe('registers', () => {
  test('0 to 2 are fixed, not zero, distinct, and printed as an image build prints them', async () => {
    const first = new EmulatedNsm();
    expect(new EmulatedNsm().pcrsFile()).toBe(first.pcrsFile());
    const lines = first.pcrsFile().trimEnd().split('\n');
    expect(lines.map((line) => line.slice(96))).toEqual([' PCR0', ' PCR1', ' PCR2']);
    const values = lines.map((line) => line.slice(0, 96));
    expect(new Set([...values, '0'.repeat(96)]).size).toBe(4);
    for (const [index, value] of values.entries()) {
      const { DescribePCR } = await ask(first, { DescribePCR: { index } });
      expect(Buffer.from(DescribePCR.data).toString('hex')).toBe(value);
    }
  });

  test('16 to 31 can be extended until they are locked', async () => {
    const nsm = new EmulatedNsm();
    const firstAnswer = await ask(nsm, { ExtendPCR: { index: 31, data: Buffer.from('a') } });
    const secondAnswer = await ask(nsm, { ExtendPCR: { index: 31, data: Buffer.from('a') } });
    expect(secondAnswer.ExtendPCR.data).not.toEqual(firstAnswer.ExtendPCR.data);
    expect(await ask(nsm, { LockPCRs: { range: 32 } })).toBe('LockPCRs');
    expect(await ask(nsm, { ExtendPCR: { index: 31, data: Buffer.from('a') } })).toEqual({
      Error: 'ReadOnlyIndex',
    });
    const { DescribePCR } = await ask(nsm, { DescribePCR: { index: 31 } });
    expect(DescribePCR).toEqual({ lock: true, data: secondAnswer.ExtendPCR.data });
  });

  test.each([
    ['DescribePCR', { index: 32 }],
    ['ExtendPCR', { index: 32, data: new Uint8Array(1) }],
    ['LockPCR', { index: 32 }],
    ['LockPCRs', { range: 33 }],
    ['DescribePCR', { index: -1 }],
  ])('that do not exist are refused with InvalidIndex: %s %j', async (operation, args) => {
    expect(await ask(new EmulatedNsm(), { [operation]: args })).toEqual({ Error: 'InvalidIndex' });
  });
});

describe('an invalid request gets', () => {
  test.each([
    ['broken CBOR', Uint8Array.of(0xff)],
    ['arguments for an operation without any', encode({ DescribeNSM: {} })],
    ['an operation without its arguments', encode('Attestation')],
    ['two operations', encode({ LockPCR: { index: 16 }, LockPCRs: { range: 16 } })],
    ['an index that is text', encode({ DescribePCR: { index: '1' } })],
    ['data that is text', encode({ ExtendPCR: { index: 16, data: 'a' } })],
    ['a nonce that is text', encode({ Attestation: { nonce: 'a' } })],
    ['an unknown operation', encode({ Bogus: {} })],
    ['a list', encode([1])],
    ['the name of an object method', encode({ constructor: {} })],
  ])('InvalidOperation for %s', async (_, request) => {
    expect(decode(await new EmulatedNsm().transact(request))).toEqual({ Error: 'InvalidOperation' });
  });

  test.each([
    ['user_data', 512],
    ['nonce', 512],
    ['public_key', 1024],
  ])('InputTooLarge for %s of more than %i bytes', async (field, limit) => {
    const nsm = new EmulatedNsm();
    expect(await ask(nsm, { Attestation: { [field]: new Uint8Array(limit) } })).toHaveProperty('Attestation');
    expect(await ask(nsm, { Attestation: { [field]: new Uint8Array(limit + 1) } })).toEqual({
      Error: 'InputTooLarge',
    });
  });

  test('InputTooLarge for more than 4096 bytes', async () => {
    expect(decode(await new EmulatedNsm().transact(new Uint8Array(4097)))).toEqual({
      Error: 'InputTooLarge',
    });
  });
});

describe('documents', () => {
  test('contain the requested fields, the time and the locked registers', async () => {
    const nsm = new EmulatedNsm(() => AT);
    await ask(nsm, { LockPCR: { index: 20 } });
    const args = { public_key: Uint8Array.of(1), user_data: Uint8Array.of(2), nonce: Uint8Array.of(3) };
    const document = await attest(nsm, args);
    expect(document).toMatchObject({ ...args, digest: 'SHA384', timestamp: AT });
    expect([...document.pcrs.keys()]).toEqual([...Array(16).keys(), 20]);
  });

  test('chain to the root that rootPem returns', async () => {
    const nsm = new EmulatedNsm(() => AT);
    const document = await attest(nsm);
    const root = new X509Certificate(nsm.rootPem());
    expect(Buffer.from(document.cabundle[0])).toEqual(root.raw);
    const chain = [...document.cabundle, document.certificate].map((der) => new X509Certificate(der));
    for (const [index, certificate] of chain.slice(1).entries()) {
      expect(certificate.verify(chain[index]?.publicKey as never)).toBe(true);
    }
  });

  test('keep their chain for an hour, then get a new chain under the same root', async () => {
    let now = AT;
    const nsm = new EmulatedNsm(() => now);
    const first = await attest(nsm);
    now += 3_599_999;
    expect((await attest(nsm)).certificate).toEqual(first.certificate);
    now += 1;
    const later = await attest(nsm);
    expect(later.certificate).not.toEqual(first.certificate);
    expect(later.cabundle[0]).toEqual(first.cabundle[0]);
  });

  test('have another root at each start', () => {
    expect(new EmulatedNsm().rootPem()).not.toBe(new EmulatedNsm().rootPem());
  });
});
