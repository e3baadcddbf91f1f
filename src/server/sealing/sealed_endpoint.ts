import type { Request, Response } from 'express';
import { type OpenedRequest, readCall, SEALED_TYPE } from 'sui-enclave/sealing/request';
import { ServerError } from 'sui-enclave-service/errors';
import { readQuery } from 'sui-enclave-service/http/app';
import type { JsonBodies } from 'sui-enclave-service/http/json_body';
import { runAsSealed } from 'sui-enclave-service/waiting';
import type { Endpoint } from '../application/app.ts';
import { EnclaveServerError } from '../enclave_errors.ts';
import { sealAnswers, throwAsServerError } from './sealed_answers.ts';
import type { SealingKey } from './sealing_key.ts';

/** Validates the body or query, and answers. It is the same for plain and sealed requests. */
export type CallEndpoint = (request: Request, response: Response, input: unknown) => Promise<void>;

/**
 * `POST /sealed`: requests to the application's endpoints that only this process can read, and their answers.
 * An error before the request is opened is answered in the clear. Every later answer is sealed, errors too.
 */
export class SealedEndpoint {
  readonly #key: SealingKey;
  readonly #bodies: JsonBodies;
  readonly #padding: number;
  readonly #endpoints = new Map<string, { readonly endpoint: Endpoint; readonly call: CallEndpoint }>();

  /** @param padding sealed answers are padded to a multiple of this number of bytes; 0 means no padding */
  constructor(key: SealingKey, bodies: JsonBodies, padding: number) {
    this.#key = key;
    this.#bodies = bodies;
    this.#padding = padding;
  }

  add(endpoint: Endpoint, call: CallEndpoint): void {
    this.#endpoints.set(endpoint.path, { endpoint, call });
  }

  /** @throws SEALED_MALFORMED, SEALED_KEY_UNKNOWN, SEALED_ALTERED, and what reading a body throws */
  async answer(request: Request, response: Response): Promise<void> {
    const message = await this.#bodies.readOfType(request, SEALED_TYPE, 'a sealed request');
    const { content, answer } = await this.#key.open(message).catch(throwAsServerError);
    sealAnswers(response, answer, this.#padding);
    await runAsSealed(() => this.#call(request, response, content));
  }

  async #call(request: Request, response: Response, content: OpenedRequest['content']): Promise<void> {
    const { method, path: target, body } = readSealedCall(content);
    const [path = '', query = ''] = splitOnce(target);
    const { endpoint, call } = this.#endpoints.get(path) ?? {};
    if (!endpoint || !call) throw new ServerError('NOT_FOUND', 'the application has no such endpoint');
    if (endpoint.method !== method) {
      throw new ServerError('METHOD_NOT_ALLOWED', `this endpoint supports ${endpoint.method}`);
    }
    if (endpoint.idempotent === false) {
      const message =
        'this endpoint does not accept sealed requests, since a host could replay them: send the request unsealed';
      throw new EnclaveServerError('SEALED_NOT_IDEMPOTENT', message);
    }
    await call(request, response, method === 'GET' ? { ...readQuery(query) } : body);
  }
}

function readSealedCall(content: Uint8Array) {
  try {
    return readCall(content);
  } catch (error) {
    return throwAsServerError(error);
  }
}

function splitOnce(target: string): [string, string] {
  const at = target.indexOf('?');
  return at === -1 ? [target, ''] : [target.slice(0, at), target.slice(at + 1)];
}
