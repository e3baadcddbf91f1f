/**
 * Sends the kind of GET that most applications need. It returns JSON that a schema describes, or throws an
 * error of the application.
 */
import type { AxiosInstance } from 'axios';
import * as v from 'valibot';
import type { HttpErrorOptions } from './errors.ts';
import { isUpstreamError, type UpstreamError } from './upstream.ts';
import { upstreamError } from './upstream_answer.ts';

/** An application's error class, and two codes of it. The compiler accepts no other codes. */
export interface JsonErrors<Code extends string> {
  /** An error class made by `errorClass`. */
  readonly class: new (
    code: Code,
    message: string,
    options: HttpErrorOptions,
  ) => Error;
  /**
   * Code for all other failures: the host is unreachable, or its answer is incomplete, too large, has a
   * status other than 200, or is not JSON that fits the schema.
   */
  readonly unavailable: NoInfer<Code>;
  /** Code for an answer that is not complete in time. */
  readonly timeout: NoInfer<Code>;
}

export interface JsonRequest<Code extends string> {
  readonly errors: JsonErrors<Code>;
  readonly params?: Readonly<Record<string, string | number | boolean>>;
  /** Headers of the request. Default: `Accept: application/json`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Ends the request early. A task passes its own signal, which is aborted when its time is over. */
  readonly signal?: AbortSignal;
}

/**
 * Returns the JSON of a GET, as the schema describes it.
 *
 * @param client a client of `upstream(host)`, whose bounds limit time and size
 * @throws an error of `errors.class`, whose cause says what failed and contains nothing of the request. Other
 *   errors of the client are passed on: for a budget that is used up, for a mistake in the request, and
 *   axios' CanceledError for an aborted signal
 */
export async function getJson<Output, Code extends string>(
  client: Pick<AxiosInstance, 'get'>,
  path: string,
  schema: v.GenericSchema<unknown, Output>,
  { errors, params = {}, headers = {}, signal }: JsonRequest<Code>,
): Promise<Output> {
  const request = {
    params,
    headers: { accept: 'application/json', ...headers },
    validateStatus: isOk,
    ...(signal && { signal }),
  };
  const { data, config } = await client.get<unknown>(path, request).catch((error: unknown) => {
    throw isUpstreamError(error) ? failure(error, errors) : error;
  });
  const answer = v.safeParse(schema, data, { abortEarly: true });
  if (!answer.success) throw failure(upstreamError('malformed', config, { status: OK }), errors);
  return answer.output;
}

const OK = 200;
const isOk = (status: number) => status === OK;

function failure<Code extends string>(cause: UpstreamError, errors: JsonErrors<Code>): Error {
  const { reason, status } = cause;
  const code = reason === 'timeout' || reason === 'slow body' ? errors.timeout : errors.unavailable;
  const message =
    reason === 'status' ? `the upstream service answered with status ${status}` : MESSAGES[reason];
  return new errors.class(code, message, { cause });
}

const MESSAGES: Readonly<Record<Exclude<UpstreamError['reason'], 'status'>, string>> = {
  unreachable: 'the upstream service could not be reached',
  broken: 'the connection to the upstream service broke',
  timeout: 'the upstream service did not answer in time',
  'slow body': 'the answer of the upstream service was not complete in time',
  'too large': 'the answer of the upstream service is too large',
  malformed: 'the answer of the upstream service is not what was expected',
};
