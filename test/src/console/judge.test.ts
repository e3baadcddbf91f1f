import { describe, expect, test } from 'vitest';
import { examine } from '../../../src/console/enclave/examine.ts';
import { judge } from '../../../src/console/enclave/judge.ts';
import { explainAttestation } from '../../../src/library/attestation/index.ts';
import { createPolicy, fromHex } from '../library/attestation/cases/case.ts';
import { cases } from '../library/attestation/cases/index.ts';

const allCases = Object.values(cases).flat();
const createSubject = (document: string) => ({ bytes: fromHex(document), nonce: undefined, from: 'a file' });

describe('the verdict', () => {
  test('is red and has the code if and only if the library refuses', async () => {
    const tones = new Set<string>();
    for (const documentCase of allCases) {
      const roots = documentCase.roots?.map(fromHex) ?? [];
      const options = {
        now: documentCase.at,
        policy: createPolicy(documentCase),
        ...(roots.length > 0 && { roots }),
      };
      const explanation = await explainAttestation(fromHex(documentCase.document), options);
      const { images } = options.policy;
      const expectation = { images, roots };
      const { tone, title, code } = judge({
        subject: createSubject(documentCase.document),
        expectation,
        explanation,
        now: documentCase.at,
      });
      expect([documentCase.name, tone === 'danger']).toEqual([documentCase.name, documentCase.code !== null]);
      expect(code?.split(':')[0]).toBe(documentCase.code ?? undefined);
      expect(title).not.toBe('');
      tones.add(tone);
    }
    expect([...tones].sort()).toEqual(['danger', 'warning']);
  });

  const real = cases['real documents']?.find(({ code }) => code === null);
  const sampleCase = real ?? allCases[0];
  if (!sampleCase) throw new Error('there are no cases');
  const subject = createSubject(sampleCase.document);
  const expectation = {
    images: createPolicy(sampleCase).images,
    roots: sampleCase.roots?.map(fromHex) ?? [],
  };

  test('is green only for a fresh answer with expected registers under the built-in root', async () => {
    const examination = await examine(subject, expectation, sampleCase.at);
    const nonce = new Uint8Array(32);
    expect(judge(examination)).toMatchObject({
      tone: 'warning',
      title: 'Genuine and expected, but not fresh',
    });
    expect(judge({ ...examination, subject: { ...subject, nonce } })).toMatchObject({ tone: 'success' });
    const expectationWithRoots = { ...expectation, roots: [new Uint8Array(1)] };
    expect(
      judge({ ...examination, subject: { ...subject, nonce }, expectation: expectationWithRoots }),
    ).toMatchObject({
      tone: 'warning',
      title: 'Trusted, under a development root',
    });
  });

  test('says that nothing is known about the image if there are no registers to compare with', async () => {
    const examination = await examine(subject, { ...expectation, images: [] }, sampleCase.at);
    expect(judge(examination)).toMatchObject({
      tone: 'warning',
      title: 'Genuine, but compared with nothing',
      text: expect.stringContaining('may run anything'),
    });
  });

  test('reports that a document answers another nonce', async () => {
    const examination = await examine(
      { ...subject, nonce: new Uint8Array(32).fill(7) },
      expectation,
      sampleCase.at,
    );
    expect(judge(examination)).toMatchObject({
      tone: 'danger',
      title: 'Replayed: it answers another request',
    });
  });
});
