/**
 * Tests a login from its proof to its signatures. Key, proof, salt and address come from a real Google login
 * (Sui's vectors).
 */
import { inspect } from 'node:util';
import { parseSerializedSignature, Signer } from '@mysten/sui/cryptography';
import { Transaction } from '@mysten/sui/transactions';
import { toBase64 } from '@mysten/sui/utils';
import {
  isValidPersonalMessageSignature,
  isValidTransactionSignature,
  verifyPersonalMessageSignature,
  verifyTransactionSignature,
} from '@mysten/sui/verify';
import {
  getExtendedEphemeralPublicKey,
  parseZkLoginSignature,
  toZkLoginPublicIdentifier,
} from '@mysten/sui/zklogin';
import { describe, expect, test } from 'vitest';
import type { LoopbackNode } from '../../../../src/devnet/node.ts';
import {
  cancelLogin,
  deriveAddress,
  resumeLogin,
  resumeSession,
  type SessionStore,
  type SponsoredTransaction,
  type SponsorRequest,
} from '../../../../src/library/zklogin/index.ts';
import {
  address,
  aud,
  buildSpending,
  buildTransaction,
  common,
  createLogin,
  devnet,
  iss,
  key,
  legacyAddress,
  openSession,
  proof,
  salt,
  saltBytes,
  setUp,
  setUpSponsor,
  sub,
} from './open_session.ts';
import { base64url, begin, issuerDetails, readStored, validatorsIssuer } from './support.ts';

describe('a login', () => {
  test('has an address that depends on the salt', () => {
    expect(createLogin().login.address(salt, { legacyAddress })).toBe(address);
    expect(createLogin().login.address(saltBytes, { legacyAddress })).toBe(address);
  });

  test('builds a request with everything that the prover needs', () => {
    const { login, jwt } = createLogin();
    expect(login.proofRequest(saltBytes)).toEqual(login.proofRequest(BigInt(salt)));
    expect(login.proofRequest(BigInt(salt))).toEqual({
      jwt,
      extendedEphemeralPublicKey: getExtendedEphemeralPublicKey(key.getPublicKey()),
      maxEpoch: '10',
      jwtRandomness: common.jwtRandomness,
      salt,
      keyClaimName: 'sub',
    });
  });

  test('opens the same session with the salt in bytes', () => {
    const { login } = createLogin();
    const session = login.open({ salt: saltBytes, proof, legacyAddress, currentEpoch: () => 8 });
    expect(session.address).toBe(address);
  });

  test('opens a session with its proof, and removes token and randomness', () => {
    const { storage, session } = openSession();
    expect(session.address).toBe(address);
    expect(session.maxEpoch).toBe(10);
    expect(readStored(storage, 'login')).toBeNull();
    expect(JSON.stringify(readStored(storage, 'session'))).not.toContain(common.jwtRandomness);
    expect(() => resumeLogin({ storage })).toThrow(expect.objectContaining({ code: 'ZKLOGIN_NO_LOGIN' }));
  });

  const mismatch = expect.objectContaining({ code: 'ZKLOGIN_PROOF' });

  test('refuses the proof of another token', () => {
    const { login, storage } = createLogin();
    const options = { salt, legacyAddress, currentEpoch: () => 8 };
    expect(() => login.open({ ...options, proof: devnet.partialInputs })).toThrow(mismatch);
    const shifted = { ...proof, issBase64Details: { ...proof.issBase64Details, indexMod4: 2 } };
    expect(() => login.open({ ...options, proof: shifted })).toThrow(mismatch);
    const elsewhere = {
      ...proof,
      issBase64Details: { value: 'yJpc3MiOiJodHRwczovL2V2aWwiLC', indexMod4: 1 },
    };
    expect(() => login.open({ ...options, proof: elsewhere })).toThrow(mismatch);
    expect(readStored(storage, 'session')).toBeNull();
  });

  test('refuses a proof with another claim of the token as its issuer', () => {
    const { login, storage } = createLogin({ iss, aud, sub });
    const payload = JSON.stringify({ iss, aud, sub });
    // The substring starts at a group of three bytes, so that it is the claim with its surroundings.
    const from = payload.indexOf('"aud"') - (payload.indexOf('"aud"') % 3);
    const value = base64url(payload.slice(from, from + 30));
    const changedProof = { ...proof, issBase64Details: { value, indexMod4: 0 } };
    expect(login.token).toContain(value);
    expect(() => login.open({ salt, proof: changedProof, legacyAddress, currentEpoch: () => 8 })).toThrow(
      mismatch,
    );
    expect(readStored(storage, 'session')).toBeNull();
  });

  test('can not detect a proof for another salt, key or nonce: only the network can', () => {
    const { login } = createLogin({ iss, aud, sub, nonce: 'of another key' });
    const session = login.open({ salt: '1', proof, legacyAddress, currentEpoch: () => 8 });
    expect(session.address).not.toBe(address);
  });

  describe('whose token has escapes in its issuer', () => {
    const written = String.raw`"iss":"https:\/\/cognito-idp.eu-west-3.amazonaws.com\/eu-west-3_aBcDeFgHi"`;
    const issuer = 'https://cognito-idp.eu-west-3.amazonaws.com/eu-west-3_aBcDeFgHi';
    /** A payload with the claims in AWS Cognito's order. */
    const payload = `{"at_hash":"x","sub":"${sub}",${written},"cognito:username":"u","aud":"${aud}","token_use":"id"}`;
    const openWith = (payload: string, claim: string) => {
      const { jwt, login, storage } = createLogin(payload);
      const changedProof = { ...proof, issBase64Details: issuerDetails(jwt, claim) };
      const session = login.open({ salt, proof: changedProof, legacyAddress, currentEpoch: () => 8 });
      return { session, changedProof, storage };
    };

    test('opens with the decoded issuer, in the address and in the signature', async () => {
      const { session, changedProof } = openWith(payload, `${written},`);
      const inputs = { issuer, subject: sub, audience: aud, salt, legacyAddress };
      expect(session.address).toBe(deriveAddress(inputs));
      const { signature } = await session.signTransaction(await buildTransaction(session.address));
      const parsed = parseSerializedSignature(signature);
      expect(parsed).toMatchObject({ signatureScheme: 'ZkLogin', zkLogin: { iss: issuer } });
      expect(validatorsIssuer(changedProof.issBase64Details)).toBe(issuer);
    });

    test('does not open with another issuer, or with a part of the issuer', () => {
      const otherPayload = `${payload.slice(0, -1)},"x":{"issu":1,"iss":"https:\\/\\/evil.example"}}`;
      expect(() => openWith(otherPayload, String.raw`"iss":"https:\/\/evil.example"}`)).toThrow(mismatch);
      expect(() => openWith(payload, written)).toThrow(mismatch);
      expect(() => openWith(payload, `"aud":"${aud}",`)).toThrow(mismatch);
    });
  });

  test("refuses a proof whose issuer is not the token's", () => {
    // The payload contains the issuer of the proof, but as the value of another claim.
    const [, payload = ''] = createLogin().jwt.split('.');
    const { login } = createLogin({
      other: JSON.parse(atob(payload)),
      aud,
      sub,
      iss: 'https://other.example',
    });
    const { issBase64Details } = proof;
    const position = login.token.split('.')[1]?.indexOf(issBase64Details.value) ?? -1;
    expect(position).toBeGreaterThan(0);
    const changedProof = { ...proof, issBase64Details: { ...issBase64Details, indexMod4: position % 4 } };
    expect(() => login.open({ salt, proof: changedProof, legacyAddress, currentEpoch: () => 8 })).toThrow(
      mismatch,
    );
  });

  test.each([
    [{ salt: '-1' }, 'ZKLOGIN_OPTION'],
    [{ salt: new Uint8Array(15) }, 'ZKLOGIN_OPTION'],
    [{ salt: (2n ** 128n).toString() }, 'ZKLOGIN_OPTION'],
    [{ legacyAddress: undefined }, 'ZKLOGIN_OPTION'],
    [{ currentEpoch: 8 }, 'ZKLOGIN_OPTION'],
    [{ currentEpoch: undefined }, 'ZKLOGIN_OPTION'],
    [{ proof: {} }, 'ZKLOGIN_MALFORMED_ANSWER'],
  ])('refuses %o', (options, code) => {
    const { login } = createLogin();
    const all = { salt, proof, legacyAddress, currentEpoch: () => 8, ...options };
    expect(() => login.open(all as never)).toThrow(expect.objectContaining({ code }));
  });
});

describe('a session', () => {
  test('signs any number of transactions with one proof', async () => {
    const { session } = openSession();
    for (let i = 0; i < 3; i++) {
      const bytes = await buildTransaction();
      const signature = Buffer.from((await session.signTransaction(bytes)).signature, 'base64');
      expect(signature[0]).toBe(5);
      const parsed = parseZkLoginSignature(signature.subarray(1));
      const { addressSeed, ...partial } = parsed.inputs;
      expect(partial).toEqual(proof);
      expect(toZkLoginPublicIdentifier(BigInt(addressSeed), iss, { legacyAddress }).toSuiAddress()).toBe(
        address,
      );
      expect(parsed.maxEpoch).toBe('10');
      await verifyTransactionSignature(bytes, toBase64(Uint8Array.from(parsed.userSignature)), {
        address: key.toSuiAddress(),
      });
    }
  });

  test('signs up to the epoch maxEpoch; after it, the error says what is needed', async () => {
    let epoch = 10;
    const { session } = openSession(() => epoch);
    const bytes = await buildTransaction();
    expect(await session.state()).toBe('usable');
    await session.signTransaction(bytes);
    epoch = 11;
    expect(await session.state()).toBe('expired');
    const expired = {
      code: 'ZKLOGIN_EXPIRED',
      message: expect.stringMatching(/new ephemeral key pair and a new proof/),
    };
    await expect(session.signTransaction(bytes)).rejects.toMatchObject(expired);
    await expect(session.execute(new Transaction(), {} as never)).rejects.toMatchObject(expired);
  });

  test.each([[Number.NaN], ['x'], [undefined], [-1]])(
    'does not sign when the current epoch is %o',
    async (epoch) => {
      const { session } = openSession(() => epoch as never);
      await expect(session.signTransaction(await buildTransaction())).rejects.toThrow(/currentEpoch/);
    },
  );

  test('does not sign for another sender, or bytes that are not a transaction', async () => {
    const { session } = openSession();
    const otherTransaction = await buildTransaction(`0x${'2'.repeat(64)}`);
    await expect(session.signTransaction(otherTransaction)).rejects.toThrow(
      expect.objectContaining({ code: 'ZKLOGIN_SENDER' }),
    );
    await expect(session.signTransaction(Uint8Array.of(1, 2, 3))).rejects.toThrow(
      /not the BCS of a transaction/,
    );
  });

  test('survives a reload, and ends when its storage is cleared; then, the error says what is needed', async () => {
    const { storage, session } = openSession();
    const again = resumeSession({ storage, currentEpoch: () => 8 });
    expect(await again.signTransaction(await buildTransaction())).toEqual(
      await session.signTransaction(await buildTransaction()),
    );
    again.end();
    const noSession = {
      code: 'ZKLOGIN_NO_SESSION',
      message: expect.stringMatching(/new key pair and a new proof/),
    };
    await expect(session.signTransaction(await buildTransaction())).rejects.toMatchObject(noSession);
    await expect(session.state()).rejects.toMatchObject(noSession);
    expect(() => resumeSession({ storage, currentEpoch: () => 8 })).toThrow(
      expect.objectContaining(noSession),
    );
  });

  test('removes everything when it ends, including a login to renew it', () => {
    const { storage, session } = openSession();
    begin({ storage });
    expect(readStored(storage, 'login')).not.toBeNull();
    session.end();
    expect([readStored(storage, 'login'), readStored(storage, 'session')]).toEqual([null, null]);
  });

  test('does not sign if it ends while the current epoch is read', async () => {
    const epoch = Promise.withResolvers<number>();
    const { storage } = openSession();
    const session = resumeSession({ storage, currentEpoch: () => epoch.promise });
    const signing = session.signPersonalMessage(Uint8Array.of(1));
    session.end();
    epoch.resolve(8);
    await expect(signing).rejects.toMatchObject({ code: 'ZKLOGIN_NO_SESSION' });
  });

  test('continues when the login to renew it is cancelled', async () => {
    const { storage, session } = openSession();
    begin({ storage });
    cancelLogin({ storage });
    expect(readStored(storage, 'login')).toBeNull();
    await session.signTransaction(await buildTransaction());
  });

  test('does not sign with the key of a login that replaced it', async () => {
    const { storage, session } = openSession();
    const otherSession = { ...readStored(storage, 'session'), address: `0x${'3'.repeat(64)}` };
    storage.set('sui-enclave/zklogin/session', JSON.stringify(otherSession));
    await expect(session.signTransaction(await buildTransaction())).rejects.toMatchObject({
      code: 'ZKLOGIN_NO_SESSION',
    });
    expect(JSON.stringify(session)).toContain(address);
  });

  test('reveals neither key nor proof', async () => {
    const { storage, session } = openSession();
    const { secretKey, inputs } = readStored(storage, 'session');
    const shown = [
      JSON.stringify(session),
      JSON.stringify({ session }),
      inspect(session, { depth: 9, showHidden: true }),
      `${session}`,
    ];
    const errors = [
      await session.signTransaction(Uint8Array.of(1)).catch((error) => error),
      await openSession(() => 11)
        .session.signTransaction(await buildTransaction())
        .catch((error) => error),
    ];
    for (const text of [...shown, ...errors.map((error) => inspect(error, { depth: 9, showHidden: true }))]) {
      for (const secret of [secretKey, inputs.proofPoints.a[0], inputs.addressSeed])
        expect(text).not.toContain(secret);
    }
    expect(JSON.parse(JSON.stringify(session))).toEqual({ address, maxEpoch: 10 });
  });
});

describe('a stored key that is damaged', () => {
  const SECRET = key.getSecretKey().slice('suiprivkey1'.length, -1);
  const damaged = `suiprivkey1${SECRET}${key.getSecretKey().endsWith('q') ? 'p' : 'q'}`;

  /** Replaces the key of the stored login or session. */
  function replaceKey(storage: SessionStore, kind: 'login' | 'session', secretKey: unknown): void {
    const stored = { ...readStored(storage, kind), secretKey };
    storage.set(`sui-enclave/zklogin/${kind}`, JSON.stringify(stored));
  }

  test.each([
    ['has a wrong checksum', damaged],
    ['is empty', ''],
    ['is not a string', 5],
    ['is missing', undefined],
  ])('neither signs nor appears in an error if it %s', async (_label, secretKey) => {
    const { storage, session } = openSession();
    replaceKey(storage, 'session', secretKey);
    const begun = createLogin();
    replaceKey(begun.storage, 'login', secretKey);
    const calls = [
      async () => await session.signTransaction(await buildTransaction()),
      async () => session.getPublicKey(),
      async () => begun.login.proofRequest(salt),
    ];
    for (const call of calls) {
      const error = await call().catch((error) => error);
      expect(error).toMatchObject({ code: 'ZKLOGIN_STORAGE' });
      expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(SECRET);
    }
  });
});

describe('a zkLogin session as a Signer', () => {
  test('has the scheme, the public key and the address of zkLogin', () => {
    const { session } = openSession();
    expect(session).toBeInstanceOf(Signer);
    expect(session.getKeyScheme()).toBe('ZkLogin');
    expect(session.getPublicKey().toSuiAddress()).toBe(address);
    expect(session.toSuiAddress()).toBe(address);
  });

  test('signs personal messages, which a node verifies for this address, epoch and text', async () => {
    const { node, client, session } = await setUp(8n);
    const message = new TextEncoder().encode('I own this address');
    const { bytes, signature } = await session.signPersonalMessage(message);
    expect(bytes).toBe(toBase64(message));
    const verified = await verifyPersonalMessageSignature(message, signature, { client, address });
    expect(verified.toSuiAddress()).toBe(address);
    const otherMessage = new TextEncoder().encode('I own that address');
    expect(await isValidPersonalMessageSignature(otherMessage, signature, { client, address })).toBe(false);
    // A message's signature is not valid for a transaction, and a transaction's is not valid for a message.
    expect(await isValidTransactionSignature(message, signature, { client })).toBe(false);
    const tx = await buildTransaction();
    const signed = await session.signTransaction(tx);
    expect(await isValidTransactionSignature(tx, signed.signature, { client, address })).toBe(true);
    expect(await isValidPersonalMessageSignature(tx, signed.signature, { client })).toBe(false);
    node.epoch = 11n;
    expect(await isValidPersonalMessageSignature(message, signature, { client })).toBe(false);
  });

  test('refuses a message after maxEpoch or after its end, and a message that is not bytes', async () => {
    const message = Uint8Array.of(1);
    await expect(openSession(() => 11).session.signPersonalMessage(message)).rejects.toMatchObject({
      code: 'ZKLOGIN_EXPIRED',
    });
    const { session } = openSession();
    await expect(session.signPersonalMessage('text' as never)).rejects.toMatchObject({
      code: 'ZKLOGIN_OPTION',
    });
    session.end();
    await expect(session.signPersonalMessage(message)).rejects.toMatchObject({ code: 'ZKLOGIN_NO_SESSION' });
    expect(() => session.getPublicKey()).toThrow(expect.objectContaining({ code: 'ZKLOGIN_NO_SESSION' }));
  });

  test('signs nothing else', async () => {
    const { session } = openSession();
    await expect(session.sign()).rejects.toMatchObject({ code: 'ZKLOGIN_OPTION' });
    await expect(
      session.signWithIntent(Uint8Array.of(1), 'TransactionEffects' as never),
    ).rejects.toMatchObject({ code: 'ZKLOGIN_OPTION' });
  });

  test('executes a transaction for code that knows only Signers', async () => {
    const { node, client, session } = await setUp(8n);
    const signer: Signer = session;
    const { Transaction: sentTransaction } = await signer.signAndExecuteTransaction({
      transaction: new Transaction(),
      client,
    });
    expect(node.ledger.executed).toContain(sentTransaction?.digest);
    expect(sentTransaction?.effects.status.success).toBe(true);
    node.faults.set('SimulateTransaction', 'reset');
    await expect(
      signer.signAndExecuteTransaction({ transaction: new Transaction(), client }),
    ).rejects.toMatchObject({ code: 'SUI_NODE_UNREACHABLE' });
  });
});

describe('a sponsor', () => {
  test('pays with its key, and the client’s description is returned', async () => {
    const { node, client, session, sponsor } = await setUpSponsor();
    const [before] = node.ledger.coins(sponsor.toSuiAddress());
    const sponsoredTransaction = await session.execute(new Transaction(), client, { sponsor });
    expect(sponsoredTransaction).toMatchObject({ status: { success: true }, events: [] });
    expect(sponsoredTransaction.effects.transactionDigest).toBe(sponsoredTransaction.digest);
    const [after] = node.ledger.coins(sponsor.toSuiAddress());
    expect(before && after && before.balance - after.balance).toBeGreaterThan(1_000_000n);
  });

  test('pays by a service, which is asked once for a transaction', async () => {
    const { node, client, session, service } = await setUpSponsor();
    node.ledger.give(address, 5n);
    const [owned] = node.ledger.coins(address);
    const tx = new Transaction();
    tx.transferObjects([owned?.object.id ?? ''], `0x${'9'.repeat(64)}`);
    const { digest } = await session.execute(tx, client, { sponsor: service });
    expect(await session.execute(tx, client, { sponsor: service })).toMatchObject({ digest });
    expect(service).toHaveBeenCalledTimes(1);
    expect(service.mock.calls[0]?.[0].sender).toBe(address);
    expect(node.ledger.executed.filter((sent) => sent === digest)).toHaveLength(1);
  });

  test('can not change the completed transaction during the approval', async () => {
    const { client, session, service } = await setUpSponsor();
    const sponsorKinds: Uint8Array[] = [];
    const sponsor = async (request: SponsorRequest) => {
      const honest = await service(request);
      sponsorKinds.push(honest.transaction);
      return honest;
    };
    const approve = async (shown: Uint8Array) => {
      expect(Transaction.from(shown).getData().gasData.owner).not.toBe(address);
      sponsorKinds[0]?.fill(0);
      shown.fill(0);
    };
    await session.execute(new Transaction(), client, { sponsor, approve });
    expect(sponsorKinds).toHaveLength(1);
  });

  test.each<[string, (honest: SponsoredTransaction) => Promise<unknown>]>([
    ['with other commands', async ({ signature }) => ({ transaction: await buildSpending(), signature })],
    [
      "with the session's own gas",
      async ({ signature }) => ({ transaction: await buildTransaction(), signature }),
    ],
    [
      'for another sender',
      async ({ signature }) => ({ transaction: await buildTransaction(`0x${'2'.repeat(64)}`), signature }),
    ],
    ['without a signature', async ({ transaction }) => ({ transaction })],
    [
      'with bytes that are not a transaction',
      async ({ signature }) => ({ transaction: Uint8Array.of(1), signature }),
    ],
    ['with undefined', async () => undefined],
  ])('that answers %s gets no signature', async (_, answer) => {
    const { node, client, session, service } = await setUpSponsor();
    const sponsor = async (request: SponsorRequest) =>
      (await answer(await service(request))) as SponsoredTransaction;
    await expect(session.execute(new Transaction(), client, { sponsor })).rejects.toMatchObject({
      code: 'ZKLOGIN_SPONSOR',
    });
    expect(node.calls).not.toContain('ExecuteTransaction');
  });

  test('that throws an error ends the call with this error', async () => {
    const { client, session } = await setUpSponsor();
    const sponsor = async () => {
      throw new RangeError('no budget left today');
    };
    await expect(session.execute(new Transaction(), client, { sponsor })).rejects.toThrow(RangeError);
  });

  test("must not have the session's address", async () => {
    const { client, session } = await setUpSponsor();
    for (const sponsor of [session, {} as never]) {
      await expect(session.execute(new Transaction(), client, { sponsor })).rejects.toMatchObject({
        code: 'ZKLOGIN_OPTION',
      });
    }
  });

  test('whose signature is invalid is refused by the node', async () => {
    const { client, session, service } = await setUpSponsor();
    const sponsor = async (request: SponsorRequest) => ({
      ...(await service(request)),
      signature: toBase64(new Uint8Array(97)),
    });
    await expect(session.execute(new Transaction(), client, { sponsor })).rejects.toMatchObject({
      code: 'SUI_NODE_REFUSED',
    });
  });
});

describe('a transaction', () => {
  test('that is not approved is neither signed nor sent', async () => {
    const { node, client, session } = await setUp(8n);
    const refused = new Error('refused');
    const approve = () => Promise.reject(refused);
    await expect(session.execute(new Transaction(), client, { approve })).rejects.toBe(refused);
    expect(node.calls).not.toContain('ExecuteTransaction');
  });

  test('is built, signed and executed with the derived address as its sender, in place of any other sender', async () => {
    const { node, client, session } = await setUp(10n);
    for (const sender of [undefined, `0x${'2'.repeat(64)}`]) {
      const tx = new Transaction();
      if (sender !== undefined) tx.setSender(sender);
      const { digest } = await session.execute(tx, client);
      expect(tx.getData().sender).toBe(address);
      expect(node.ledger.executed).toContain(digest);
    }
  });

  describe('if the node shows it later than it executes it', () => {
    test('is shown before execute returns, so that the next one can be built', async () => {
      const { node, client, session } = await setUp(8n);
      node.lagMs = 100;
      for (let i = 0; i < 2; i++) await session.execute(new Transaction(), client);
      // The first transaction sent SUI to the address.
      expect(node.ledger.executed).toHaveLength(3);
    });

    test('is waited for only as long as the caller chooses', async () => {
      const { node, client, session } = await setUp(8n);
      node.lagMs = 60_000;
      const { digest } = await session.execute(new Transaction(), client, { waitMs: 0 });
      expect(node.ledger.executed.at(-1)).toBe(digest);
      expect(node.calls).not.toContain('GetTransaction');
      node.lagMs = 0;
      await expect(session.execute(new Transaction(), client)).rejects.toMatchObject({
        code: 'SUI_OBJECT_CHANGED',
      });
    });

    test('causes an error with its digest after waitMs, and may be executed again', async () => {
      const { node, client, session } = await setUp(8n);
      const tx = new Transaction();
      node.faults.set('GetTransaction', { status: 'NOT_FOUND', message: 'not yet' });
      const error = await session.execute(tx, client, { waitMs: 30 }).catch((thrown) => thrown);
      expect(error).toMatchObject({ code: 'SUI_NOT_VISIBLE', digest: node.ledger.executed.at(-1) });
      node.faults.clear();
      expect(await session.execute(tx, client)).toMatchObject({ digest: error.digest });
      expect(node.ledger.executed).toHaveLength(2);
    });
  });

  test('is not even built after maxEpoch', async () => {
    const { node, client, session } = await setUp(11n);
    await expect(session.execute(new Transaction(), client)).rejects.toMatchObject({
      code: 'ZKLOGIN_EXPIRED',
    });
    expect(new Set(node.calls)).toEqual(new Set(['GetEpoch']));
  });

  test('that fails causes an error with the reason', async () => {
    const { node, client, session } = await setUp(8n);
    node.faults.set('ExecuteTransaction', { status: 'INVALID_ARGUMENT', message: 'Invalid user signature' });
    await expect(session.execute(new Transaction(), client)).rejects.toMatchObject({
      code: 'SUI_NODE_REFUSED',
    });
    node.faults.set('GetEpoch', 'reset');
    await expect(session.execute(new Transaction(), client)).rejects.toMatchObject({
      code: 'SUI_NODE_UNREACHABLE',
    });
  });

  test('whose proof validators refuse causes an error with the possible reasons', async () => {
    const { node, client, session } = await setUp(8n);
    const message =
      'Invalid user signature: Signature is not valid: General cryptographic error: Groth16 proof verify failed';
    node.faults.set('ExecuteTransaction', { status: 'INVALID_ARGUMENT', message });
    await expect(session.execute(new Transaction(), client)).rejects.toMatchObject({
      code: 'ZKLOGIN_PROOF',
      message: expect.stringMatching(/ephemeral key, salt or nonce, so log in again; or .* another network/),
      cause: expect.objectContaining({ code: 'SUI_NODE_REFUSED' }),
    });
  });

  describe('if its answer is lost', () => {
    /** Returns the executed transactions, without the first, which sent SUI to the address. */
    const listExecuted = ({ ledger }: LoopbackNode) => ledger.executed.slice(1);
    const shortLookUp = { lookUpMs: 50 };

    test.each(['executes, and does not answer', 'executes, and says ABORTED'] as const)(
      'is looked up by its digest if the node %s',
      async (fault) => {
        const { node, client, session } = await setUp(8n);
        node.faults.set('ExecuteTransaction', fault);
        const { digest, status, effects } = await session.execute(new Transaction(), client);
        expect(listExecuted(node)).toEqual([digest]);
        expect(status.success).toBe(true);
        expect(effects.transactionDigest).toBe(digest);
      },
    );

    test('is executed once, however often it is tried again', async () => {
      const { node, client, session } = await setUp(8n);
      const tx = new Transaction();
      node.faults.set('ExecuteTransaction', 'executes, and does not answer');
      node.faults.set('GetTransaction', { status: 'UNAVAILABLE', message: 'busy' });
      const error = await session.execute(tx, client, shortLookUp).catch((thrown) => thrown);
      const [digest = '?'] = listExecuted(node);
      const message = expect.stringContaining(digest);
      expect(error).toMatchObject({ code: 'SUI_UNKNOWN_OUTCOME', digest, message });
      node.faults.clear();
      for (let i = 0; i < 3; i++) expect(await session.execute(tx, client)).toMatchObject({ digest });
      expect(listExecuted(node)).toEqual([digest]);
    });

    test('causes an error with advice if objects changed and the node does not know the digest', async () => {
      const { node, client, session } = await setUp(8n);
      const tx = new Transaction();
      await session.execute(tx, client);
      node.faults.set('GetTransaction', { status: 'NOT_FOUND', message: 'pruned' });
      await expect(session.execute(tx, client)).rejects.toMatchObject({
        code: 'SUI_OBJECT_CHANGED',
        message: expect.stringMatching(/was sent before and got no answer, look it up/),
      });
      expect(listExecuted(node)).toHaveLength(1);
    });

    test('because the request was lost is executed when it is sent again', async () => {
      const { node, client, session } = await setUp(8n);
      const tx = new Transaction();
      node.faults.set('ExecuteTransaction', 'reset');
      const error = await session.execute(tx, client, shortLookUp).catch((thrown) => thrown);
      expect(error.code).toBe('SUI_UNKNOWN_OUTCOME');
      expect(listExecuted(node)).toEqual([]);
      node.faults.clear();
      expect(await session.execute(tx, client)).toMatchObject({ digest: error.digest });
      expect(listExecuted(node)).toEqual([error.digest]);
    });
  });
});
