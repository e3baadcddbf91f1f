/**
 * The exchanges recorded in `test/vectors/nsm-shapes.txt`, and other parts from which tests build messages.
 */
import { readFileSync } from 'node:fs';

export interface Exchange {
  /** The request in hexadecimal; only its beginning if `requestComplete` is false. */
  request: string;
  requestComplete: boolean;
  answer: string;
  answerComplete: boolean;
  /** Length of the whole answer, in bytes. */
  answerLength: number;
}

const text = readFileSync(new URL('../../../vectors/nsm-shapes.txt', import.meta.url), 'utf8');

export const exchanges: Exchange[] = [
  ...text.matchAll(/^REQ ([0-9a-f]+)(…?) .*\nRES len=(\d+) used=\d+ ([0-9a-f]+)(…?)$/gm),
].map(([, request = '', requestCut, length, answer = '', answerCut]) => ({
  request,
  requestComplete: requestCut === '',
  answer,
  answerComplete: answerCut === '',
  answerLength: Number(length),
}));

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
export const unhex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));
export const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
export const filled = (length: number, value = 7): Uint8Array => new Uint8Array(length).fill(value);

/** Fields of a well-formed answer to DescribeNSM. */
export const description = {
  version_major: 1,
  version_minor: 2,
  version_patch: 3,
  module_id: 'i-0123456789abcdef0-enc0123456789abcdef',
  max_pcrs: 32,
  locked_pcrs: [0, 1, 2],
  digest: 'SHA384',
};
