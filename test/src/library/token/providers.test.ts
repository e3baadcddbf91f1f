import { describe, expect, test } from 'vitest';
import { PROVIDERS } from '../../../../src/library/token/providers.ts';

const ALL = ['mainnet', 'testnet', 'devnet'];

describe('the providers that Sui knows', () => {
  test.each([
    ['google', 'https://accounts.google.com', 'https://www.googleapis.com/oauth2/v3/certs', true, ALL],
    [
      'facebook',
      'https://www.facebook.com',
      'https://www.facebook.com/.well-known/oauth/openid/jwks/',
      true,
      ALL,
    ],
    ['twitch', 'https://id.twitch.tv/oauth2', 'https://id.twitch.tv/oauth2/keys', true, ALL],
    ['apple', 'https://appleid.apple.com', 'https://appleid.apple.com/auth/keys', true, ALL],
    ['kakao', 'https://kauth.kakao.com', 'https://kauth.kakao.com/.well-known/jwks.json', false, ['devnet']],
    ['slack', 'https://slack.com', 'https://slack.com/openid/connect/keys', true, ['devnet']],
    [
      'microsoft',
      'https://login.microsoftonline.com/{tenantid}/v2.0',
      'https://login.microsoftonline.com/common/discovery/v2.0/keys',
      true,
      ['devnet'],
    ],
  ])('include %s', (name, issuer, jwksUrl, authFlowOnly, networks) => {
    expect(PROVIDERS[name as keyof typeof PROVIDERS]).toMatchObject({
      issuer,
      jwksUrl,
      authFlowOnly,
      networks,
    });
  });

  test('are seven providers, two of which return a code that must be exchanged', () => {
    expect(Object.keys(PROVIDERS)).toHaveLength(7);
    const exchanging = Object.entries(PROVIDERS).flatMap(([name, { token }]) =>
      token ? [[name, token]] : [],
    );
    expect(Object.fromEntries(exchanging)).toEqual({
      kakao: { url: 'https://kauth.kakao.com/oauth/token', variant: 'grant_type' },
      slack: { url: 'https://slack.com/api/openid.connect.token', variant: 'client_secret' },
    });
  });
});
