import type { ServerResponse } from 'node:http';
import { ApplicationMistake } from 'sui-enclave/errors';
import { discardBody } from './json_body.ts';

/** JSON that is written unchanged, such as a signed answer, which may be sent many times. */
export class JsonText {
  readonly json: string;
  /** Length of `json` in UTF-8. */
  readonly bytes: number;
  /** Names and values in turn, for an answer that is not wrapped. */
  readonly headers: readonly string[];

  constructor(json: string, headers: readonly string[] = []) {
    this.json = json;
    this.bytes = Buffer.byteLength(json);
    this.headers = headers;
  }

  /** Returns the value for `JSON.stringify`, in case the text is within another value. */
  toJSON(): unknown {
    return JSON.parse(this.json);
  }
}

/** An answer in JSON, before it is wrapped. */
export interface InnerAnswer {
  readonly status: number;
  readonly json: string;
  readonly retryAfterSeconds: number | undefined;
  /** The id in the header `x-request-id`. */
  readonly requestId: string | undefined;
}

/** Wraps an answer in an answer of status 200. It is used once for each response. */
export interface Wrapper {
  readonly mediaType: string;
  wrap(answer: InnerAnswer): Uint8Array;
}

/** Key under which a response keeps the wrapper of its answer. */
const WRAPPER = Symbol('wrapper');
type Wrappable = ServerResponse & { [WRAPPER]?: Wrapper };

/** Headers that reveal something about an answer. A wrapped answer must not have them. */
const ANSWER_HEADERS = ['retry-after', 'www-authenticate', 'allow'];

/** Key under which a response keeps the headers that precede its answer: names and values in turn. */
const HEADERS = Symbol('headers');
type Prepared = ServerResponse & { [HEADERS]?: string[] };

/**
 * Adds a header to the answer. (Node's `setHeader` costs more: it makes `writeHead` check and copy every
 * header.)
 */
export function addHeader(response: ServerResponse, name: string, value: string): void {
  const headers = (response as Prepared)[HEADERS];
  if (headers) headers.push(name, value);
  else (response as Prepared)[HEADERS] = [name, value];
}

/** Hands the added headers to Node, for an answer that the server does not write itself. */
export function setAddedHeaders(response: ServerResponse): void {
  const headers = (response as Prepared)[HEADERS] ?? [];
  for (let at = 0; at < headers.length; at += 2) {
    response.appendHeader(headers[at] as string, headers[at + 1] as string);
  }
  (response as Prepared)[HEADERS] = [];
}

/** Writes the head of the answer with the added headers. */
export function writeHead(response: ServerResponse, status: number, headers: readonly string[]): void {
  response.writeHead(status, [...((response as Prepared)[HEADERS] ?? []), ...headers]);
}

/**
 * Writes the answer with its length and in one piece (which Node does for a string, but not for a Buffer).
 * Express' helpers would hash every body for an ETag and look up its type, which costs more than the rest of
 * a request.
 */
function send(
  response: ServerResponse,
  status: number,
  type: string,
  body: string | Uint8Array,
  bytes: number,
): void {
  // The request is already answered if the handler finishes after its deadline.
  if (response.headersSent) return;
  writeHead(response, status, [
    'content-type',
    type,
    'content-length',
    String(bytes),
    // No answer may be reused: it describes the current state, or belongs to a single request.
    'cache-control',
    'no-store',
    'x-content-type-options',
    'nosniff',
  ]);
  endWithTurn(response, body);
  discardBody(response.req);
}

/** Key under which a response keeps its body until the end of the event loop's turn. */
const BODY = Symbol('body');
type Answered = ServerResponse & { [BODY]?: string | Uint8Array | undefined };

let tasks: (() => void)[] = [];

/** Calls a function at the end of the event loop's turn, after the functions that were passed before. */
export function atEndOfTurn(task: () => void): void {
  if (tasks.push(task) === 1) setImmediate(runTasks);
}

function runTasks(): void {
  let begunCount = 0;
  try {
    // This includes tasks that these tasks add.
    for (const task of tasks) {
      begunCount += 1;
      task();
    }
  } finally {
    // If a task has thrown, the tasks after it must still write their answers.
    tasks = tasks.slice(begunCount);
    if (tasks.length > 0) setImmediate(runTasks);
  }
}

/**
 * Writes the answers of one turn of the event loop one after the other at its end. Waking the peer costs
 * more than the rest of a request. A write between two requests always wakes it, but of several writes in a
 * row, only the first does.
 */
function endWithTurn(response: Answered, body: string | Uint8Array): void {
  response[BODY] = body;
  atEndOfTurn(() => {
    response[BODY] = undefined;
    response.end(body);
  });
}

/** Returns whether the whole answer is decided, though the peer may not have received it. */
export function isAnswered(response: ServerResponse): boolean {
  return response.writableEnded || (response as Answered)[BODY] !== undefined;
}

/** Answers with a value as JSON. @throws ApplicationMistake if JSON can't represent the value */
export function sendJson(response: ServerResponse, status: number, value: object): void {
  const isText = value instanceof JsonText;
  const json = isText ? value.json : JSON.stringify(value);
  // Wrapped, it would be an answer with status 200 that its caller can't read.
  if (json === undefined)
    throw new ApplicationMistake("an endpoint returned a value that JSON can't represent");
  const wrapper = (response as Wrappable)[WRAPPER];
  if (wrapper) {
    sendWrapped(response, status, json, wrapper);
    return;
  }
  if (isText) {
    for (let at = 0; at < value.headers.length; at += 2) {
      addHeader(response, value.headers[at] as string, value.headers[at + 1] as string);
    }
  }
  send(
    response,
    status,
    'application/json; charset=utf-8',
    json,
    isText ? value.bytes : Buffer.byteLength(json),
  );
}

export function sendText(response: ServerResponse, text: string, status = 200): void {
  send(response, status, 'text/plain; charset=utf-8', text, Buffer.byteLength(text));
}

/** Wraps every further answer to this request, errors included. */
export function wrapAnswers(response: ServerResponse, wrapper: Wrapper): void {
  (response as Wrappable)[WRAPPER] = wrapper;
}

export function isWrapped(response: ServerResponse): boolean {
  return (response as Wrappable)[WRAPPER] !== undefined;
}

function sendWrapped(response: ServerResponse, status: number, json: string, wrapper: Wrapper): void {
  if (response.headersSent) return;
  const requestId = findAddedHeader(response, 'x-request-id');
  const retry = takeAnswerHeaders(response).get('retry-after');
  const retryAfterSeconds = retry === undefined ? undefined : Number(retry);
  const wrapped = wrapper.wrap({ status, json, retryAfterSeconds, requestId });
  send(response, 200, wrapper.mediaType, wrapped, wrapped.length);
}

function findAddedHeader(response: Prepared, name: string): string | undefined {
  const headers = response[HEADERS] ?? [];
  const at = headers.indexOf(name);
  // After `setAddedHeaders`, Node has the header.
  return at === -1 ? response.getHeader(name)?.toString() : headers[at + 1];
}

/** Removes the headers that belong to the answer, and returns them. */
function takeAnswerHeaders(response: Prepared): Map<string, string> {
  const headers = response[HEADERS] ?? [];
  const otherHeaders: string[] = [];
  const answerHeaders = new Map<string, string>();
  for (let at = 0; at < headers.length; at += 2) {
    const [name, value] = headers.slice(at, at + 2) as [string, string];
    if (ANSWER_HEADERS.includes(name)) answerHeaders.set(name, value);
    else otherHeaders.push(name, value);
  }
  response[HEADERS] = otherHeaders;
  return answerHeaders;
}
