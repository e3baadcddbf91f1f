/** Tests `loginStage`, which tells a page at each load how far a login is. */
import { describe, expect, test } from 'vitest';
import {
  cancelLogin,
  completeLogin,
  createMemoryStore,
  loginStage,
} from '../../../../src/library/zklogin/index.ts';
import { type Begun, begin, createJwt, NOW, REDIRECT_URI, readStored } from './support.ts';

const HOME = 'https://wallet.example/';
const SESSION = 'sui-enclave/zklogin/session';

const stageAt = (redirect: Parameters<typeof loginStage>[0], storage = createMemoryStore()) =>
  loginStage(redirect, { storage });
const answerUrl = (begun: Begun) => begun.back({ id_token: createJwt(begun.claims) });
const complete = (begun: Begun) =>
  completeLogin(answerUrl(begun), { storage: begun.storage, now: () => NOW });

describe('the stage of a login', () => {
  test('is "none" before it is begun', () => {
    expect(stageAt(HOME)).toBe('none');
  });

  test('is "none" while the user is at the provider, or back without an answer', () => {
    const { storage } = begin();
    for (const url of [HOME, REDIRECT_URI, `${REDIRECT_URI}?tab=2#top`, '', new URL(HOME)]) {
      expect(stageAt(url, storage)).toBe('none');
    }
  });

  test('is "answered" for every form of answer, including a refusal and an answer at another URL', () => {
    const begun = begin();
    const { hash } = new URL(answerUrl(begun));
    for (const redirect of [
      answerUrl(begun),
      new URL(answerUrl(begun)),
      hash,
      begun.back({ code: 'x' }, '?'),
      begun.back({ error: 'access_denied' }, '?'),
      new URLSearchParams(hash.slice(1)),
      answerUrl(begun).replace('/back', '/back/'),
      `${REDIRECT_URI}#id_token=x`,
    ]) {
      expect(stageAt(redirect, begun.storage)).toBe('answered');
    }
  });

  test('is not "answered" by a query parameter of the redirectUri itself, even if its name is \'code\'', () => {
    const redirectUri = `${REDIRECT_URI}?code=of-the-wallet`;
    const { storage, state } = begin({ redirectUri });
    expect(stageAt(redirectUri, storage)).toBe('none');
    expect(stageAt(`${redirectUri}#state=${state}`, storage)).toBe('answered');
  });

  test('is "complete" once the token is stored, even if the answer is still in the URL', async () => {
    const begun = begin();
    await complete(begun);
    for (const url of [HOME, answerUrl(begun)]) expect(stageAt(url, begun.storage)).toBe('complete');
    cancelLogin({ storage: begun.storage });
    expect(stageAt(HOME, begun.storage)).toBe('none');
  });

  test('is "open" during a session, until the provider answers a login that renews the session', async () => {
    const begun = begin();
    begun.storage.set(SESSION, JSON.stringify({ stage: 'open' }));
    expect(stageAt(HOME, begun.storage)).toBe('open');
    expect(stageAt(answerUrl(begun), begun.storage)).toBe('answered');
    await complete(begun);
    expect(stageAt(HOME, begun.storage)).toBe('complete');
    cancelLogin({ storage: begun.storage });
    expect(stageAt(HOME, begun.storage)).toBe('open');
  });
});

test('a link with an unexpected answer has no effect', () => {
  const storage = createMemoryStore();
  const forged = `${REDIRECT_URI}#state=x&id_token=${createJwt({})}`;
  expect(stageAt(forged, storage)).toBe('none');
  storage.set(SESSION, JSON.stringify({ stage: 'open' }));
  expect(stageAt(forged, storage)).toBe('open');
  expect(readStored(storage, 'session')).toEqual({ stage: 'open' });
});

test('a foreign value in the storage is refused with ZKLOGIN_STORAGE', () => {
  const storage = createMemoryStore();
  storage.set(SESSION, '{}');
  expect(() => stageAt(HOME, storage)).toThrow(expect.objectContaining({ code: 'ZKLOGIN_STORAGE' }));
});
