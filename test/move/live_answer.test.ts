/**
 * Passes an answer of the running server from `/process_data` to the contract's `update_weather` in Sui's VM.
 */
import { describe, expect, test } from 'vitest';
import { chooseFramework, testPackage } from '../../src/toolchain/move/packages.ts';
import { startWeather } from '../src/server/support.ts';
import { moveText } from './vectors.ts';
import { withoutOwnTests } from './without_own_tests.ts';

const framework = chooseFramework(process.env);

interface Answer {
  readonly response: {
    readonly intent: number;
    readonly timestamp_ms: number;
    readonly data: { readonly location: string; readonly temperature: number };
  };
  readonly signature: string;
}

/** Values that `update_weather` depends on. Signature and key are in hexadecimal. */
interface Submission {
  readonly location: string;
  readonly temperature: bigint;
  readonly timestampMs: bigint;
  readonly signature: string;
  readonly publicKey: string;
}

function flipLastBit(hex: string): string {
  const bytes = Buffer.from(hex, 'hex');
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
  return bytes.toString('hex');
}

function moveTest(name: string, attributes: string, submission: Submission, nowMs: number): string {
  const { location, temperature, timestampMs, signature, publicKey } = submission;
  return `
#[${attributes}]
fun ${name}() {
    let mut ctx = tx_context::dummy();
    let cap = enclave::new_cap_for_testing<WEATHER>(&mut ctx);
    let mut config = cap.new_config_for_testing(&mut ctx);
    let enclave = config.new_enclave_for_testing(&cap, x"${publicKey}");
    let mut clock = clock::create_for_testing(&mut ctx);
    clock.set_for_testing(${nowMs});
    let nft = weather::update_weather(
        ${moveText(location)},
        ${temperature},
        ${timestampMs},
        &x"${signature}",
        &enclave,
        &config,
        &clock,
        &mut ctx,
    );
    assert!(nft.temperature() == ${temperature});
    transfer::public_transfer(nft, @0xA);
    clock.destroy_for_testing();
    enclave.destroy_enclave_for_testing();
    config.destroy_config_for_testing();
    cap.destroy_cap_for_testing();
}
`;
}

describe('a live answer', () => {
  test.each(['San Francisco', 'Zürich 東京 🌤 "quoted" \\'])(
    'for %s is accepted by update_weather, and refused if one bit is changed',
    async (place) => {
      const { server, ask } = await startWeather();
      const { pk } = (await (await server.get('/health_check')).json()) as { pk: string };
      const answer = (await (await ask(place)).json()) as Answer;
      const nowMs = Date.now();
      expect(answer.response.intent).toBe(0);
      const submission: Submission = {
        location: answer.response.data.location,
        temperature: BigInt(answer.response.data.temperature),
        timestampMs: BigInt(answer.response.timestamp_ms),
        signature: answer.signature,
        publicKey: pk,
      };
      expect(submission.location).toBe(place);
      const location = Buffer.from(submission.location);
      location.writeUInt8(location.readUInt8(0) ^ 1);
      const changed: Record<string, Partial<Submission>> = {
        signature: { signature: flipLastBit(submission.signature) },
        location: { location: location.toString() },
        temperature: { temperature: submission.temperature ^ 1n },
        timestamp: { timestampMs: submission.timestampMs ^ 1n },
        public_key: { publicKey: flipLastBit(submission.publicKey) },
      };
      const refused = 'test, expected_failure(abort_code = enclave::EInvalidSignature)';
      const source = [
        '#[test_only]\nmodule app::live_answer;\n',
        'use app::weather::{Self, WEATHER};\nuse enclave::enclave;\nuse sui::clock;\n',
        moveTest('accepted', 'test', submission, nowMs),
        ...Object.entries(changed).map(([name, change]) =>
          moveTest(`refused_with_another_${name}`, refused, { ...submission, ...change }, nowMs),
        ),
      ].join('');

      const run = await testPackage('weather', framework, {
        extra: { ...withoutOwnTests('weather'), 'tests/live_answer.move': source },
      });

      expect(run.output.match(/\[ \w+ +\] app::live_answer::\w+/g), run.output).toEqual([
        '[ PASS    ] app::live_answer::accepted',
        ...Object.keys(changed)
          .sort()
          .map((name) => `[ PASS    ] app::live_answer::refused_with_another_${name}`),
      ]);
      expect(run.passed).toBe(true);
    },
  );
});
