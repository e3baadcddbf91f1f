import type { RequestHandler, Router } from 'express';
import { ConfigError } from 'sui-enclave/errors';
import type { DeclaredStruct, SignedType } from 'sui-enclave/wire/intent';
import { validate } from 'sui-enclave-service/http/validate';
import type { Logger } from 'sui-enclave-service/log';
import type { Env } from 'sui-enclave-service/settings';
import type { Upstreams } from 'sui-enclave-service/upstream';
import * as v from 'valibot';
import type { SignedAnswer } from '../keys/signer.ts';
import type { EventDeclarations } from '../reports/events.ts';
import type { SecretsCheck } from '../secrets/secrets.ts';
import type { Task } from '../tasks/task.ts';

/**
 * An application is a folder `<name>` with `app.yaml` and `app.ts`. The default export of `app.ts` is what
 * `defineApp` returns. The core loads no other file of the folder. Neither `app.ts` nor its imports may use
 * `await` at the top level, since the image's bundle is CommonJS.
 */
export interface ApplicationModule {
  /** Every type that the application signs, each with a unique intent code. */
  readonly signs: readonly DeclaredStruct[];
  /**
   * Names of secrets that must come from a file or the hand-off, since process lists show the environment.
   */
  readonly secretsNotInEnvironment?: readonly string[];
  /**
   * The events that the application sends, with the names of their fields, as app.yaml declares them.
   * Default: none.
   */
  readonly events?: EventDeclarations;
  /**
   * Handlers of Express that run, in this order, before the endpoints of the application, `/sealed`, `GET /`
   * and the router. They see what the host sees, so they see a sealed request before it is opened. They must
   * leave the body to the endpoints. Default: none.
   */
  readonly before?: readonly RequestHandler[];
  /** Called once at the start. @throws ConfigError if the application's configuration is invalid */
  create(context: AppContext): Application;
}

/** The functions and settings that the core provides to an application, which may sign the types `Signed`. */
export interface AppContext<Signed = DeclaredStruct, Events extends EventDeclarations = EventDeclarations> {
  /** Environment variables of the server. */
  readonly env: Env;
  /** Log of the server, which redacts secrets. */
  readonly log: Logger;
  /** Returns the value of a secret that app.yaml names. @throws SecretsMissing until the hand-off */
  secret(name: string): string;
  /**
   * Makes a client for an endpoint that app.yaml names. It is an instance of axios: see Upstreams. Call it at
   * the start, so that a missing host stops the start.
   */
  readonly upstream: Upstreams;
  /** Signs with the enclave's key: see Signer.sign. */
  sign<Data, Input>(
    type: SignedType<Data, Input> & Signed,
    timestampMs: bigint,
    data: Data & Input,
  ): SignedAnswer;
  /**
   * Returns the value that a task last published, however old it is. Call it in handlers and tasks.
   *
   * @throws TASK_NO_VALUE before the first value; ApplicationMistake if `create` has not returned the task
   */
  latest(task: string): SignedAnswer;
  /**
   * Sends an event, which the parent instance can read, if `EVENTS` is set. Sends nothing during a sealed
   * request, or in work that such a request leaves behind. Never waits: events beyond the server's bounds are
   * dropped.
   *
   * @param fields the values of the fields, each a finite number
   * @throws ApplicationMistake if app.yaml does not declare the event with these fields
   */
  emit<Name extends keyof Events & string>(
    name: Name,
    fields: Readonly<Record<Events[Name][number], number>>,
  ): void;
}

/** An application: its endpoints, routes, tasks and checks. */
export interface Application {
  /**
   * Validates each complete set of secrets before it is accepted. A ConfigError rejects the set. A set from
   * the environment is checked before the first request. A set from a hand-off may come at any time.
   */
  readonly checkSecrets?: SecretsCheck;
  /** Endpoints, each with its own method and path. */
  readonly endpoints?: readonly Endpoint[];
  /** Routes for requests that endpoints can't express. */
  readonly routes?: Routes;
  /** Work that the server begins by itself: at most 16 tasks, each made by `task`. Default: none. */
  readonly tasks?: readonly Task[];
}

/**
 * An Express router for what an endpoint can't express, such as files, streams and other media types. Its
 * requests can't be sealed, and are refused with `REQUESTS=sealed`.
 */
export interface Routes {
  /**
   * A fixed path such as `/x`. The router gets requests for this path and for the paths below it.
   * Endpoints come before it.
   */
  readonly prefix: string;
  /**
   * Router whose requests have arrived whole, within the server's limits. As in any router, `request.body` is
   * set by the router's own parser of bodies, such as `express.json()`.
   */
  readonly router: Router;
  /**
   * 'own': the router answers preflights and sets the headers of CORS itself. Default: the server does so, as
   * `CORS_ORIGINS` says.
   */
  readonly cors?: 'own';
}

/**
 * Gives `create` the type of its context, whose `sign` accepts the types of `signs`, and `emit` those of
 * `events`.
 *
 * @example
 * const Sum = signedType(0, struct('Sum', { total: u64 }));
 * const Payload = v.strictObject({ numbers: v.array(v.pipe(v.number(), v.integer(), v.minValue(0))) });
 * export default defineApp({
 *   signs: [Sum],
 *   create: ({ sign }) => ({
 *     endpoints: [
 *       processData({
 *         payload: Payload,
 *         async handle({ numbers }) {
 *           const total = numbers.reduce((sum, number) => sum + BigInt(number), 0n);
 *           return sign(Sum, BigInt(Date.now()), { total });
 *         },
 *       }),
 *     ],
 *   }),
 * });
 */
export function defineApp<
  const Signs extends readonly DeclaredStruct[],
  const Events extends EventDeclarations = EventDeclarations,
>(
  definition: Omit<ApplicationModule, 'signs' | 'events' | 'create'> & {
    readonly signs: Signs;
    readonly events?: Events;
    /** Creates the application at the start of the server. */
    create(context: AppContext<Signs[number], Events>): Application;
  },
): ApplicationModule {
  return definition;
}

/** The value that `endpoint` and `processData` return, without the types of its input. */
export interface Endpoint {
  /** HTTP method of the endpoint. */
  readonly method: 'GET' | 'POST';
  /** Path of the endpoint, such as `/process_data`. */
  readonly path: string;
  /** Whether repeating a request has no further effect. */
  readonly idempotent: boolean;
  /** The schema of the endpoint's body or query, for `sui-enclave schema`. */
  readonly input?: v.GenericSchema;
  /**
   * Checks a body or query.
   *
   * @returns a handler of the request, whose answer is sent as JSON with status 200
   * @throws INVALID_INPUT
   */
  accept(input: unknown): (caller: Caller) => Promise<Answer>;
}

type Answer = SignedAnswer | object;
type Schema<Output> = v.GenericSchema<unknown, Output>;

interface Handler<Input, Output = Answer> {
  /**
   * False if repeating a request has another effect, such as a second payment. Sealed requests are then
   * refused, since the host could repeat one, and the copy would not differ from the original. Default: true.
   */
  readonly idempotent?: boolean;
  /** @param input the validated body or query; undefined for a GET without a schema */
  handle(input: Input, caller: Caller): Promise<Output>;
}

interface Get<Input> extends Handler<Input> {
  readonly method: 'GET';
  /** A fixed path such as `/latest`, without parameters. */
  readonly path: string;
  /**
   * The schema of the query: an object with a string for each parameter, or a list of strings for one that is
   * given more than once. Without a schema the query is ignored.
   */
  readonly query?: Schema<Input> | undefined;
  readonly body?: never;
}

interface Post<Input> extends Handler<Input> {
  readonly method: 'POST';
  /** A fixed path such as `/get_salt`, without parameters. */
  readonly path: string;
  /** The schema of the JSON body. It should reject unknown properties. */
  readonly body: Schema<Input>;
  readonly query?: never;
}

/** Requires a schema of the query for a GET whose handler has an input. */
type NeedsQuery<Input> = undefined extends Input ? unknown : { readonly query: unknown };

/**
 * Defines an endpoint, whose handler receives the type that its schema describes.
 *
 * @throws ConfigError
 * @example
 * endpoint({ method: 'GET', path: '/latest', handle: async () => ({ price: latestPrice() }) });
 */
export function endpoint<Input = undefined>(
  definition: (Get<Input> & NeedsQuery<Input>) | Post<Input>,
): Endpoint {
  checkEndpoint(definition);
  const { method, path, idempotent = true } = definition;
  const input = definition.method === 'GET' ? definition.query : definition.body;
  return { method, path, idempotent, ...(input && { input }), accept: createAccept(definition, input) };
}

function createAccept<Input>(
  definition: Get<Input> | Post<Input>,
  schema: Schema<Input> | undefined,
): Endpoint['accept'] {
  if (schema === undefined) {
    // Input includes undefined, as NeedsQuery requires.
    const handler: Handler<Input | undefined> = definition;
    return () => (caller) => handler.handle(undefined, caller);
  }
  return (input) => {
    const valid = validate(schema, input);
    return (caller) => definition.handle(valid, caller);
  };
}

interface Unchecked {
  readonly method?: unknown;
  readonly path?: unknown;
  readonly body?: unknown;
  readonly query?: unknown;
}

/** Checks an endpoint that JavaScript may have passed without types. @throws ConfigError */
function checkEndpoint({ method, path, body, query }: Unchecked): void {
  if (method !== 'GET' && method !== 'POST') {
    throw new ConfigError(`the endpoint ${path} must have the method GET or POST`);
  }
  if (typeof path !== 'string' || (path !== '/' && !/^(\/[A-Za-z0-9_.-]+)+$/.test(path))) {
    throw new ConfigError(`${path} is not a fixed path`);
  }
  if (method === 'GET') {
    if (body) throw new ConfigError(`the endpoint GET ${path} can't have a body: give it a query`);
    return;
  }
  if (query) throw new ConfigError(`the endpoint POST ${path} can't have a query: give it a body`);
  if (!body) throw new ConfigError(`the endpoint POST ${path} needs a schema of its body`);
}

interface ProcessData<Payload> extends Handler<Payload, SignedAnswer> {
  /** The schema of the request's `payload`. It should reject unknown properties. */
  readonly payload: Schema<Payload>;
}

/**
 * Defines `POST /process_data`, whose body has the single property `payload`, and whose answer is signed.
 *
 * @example
 * processData({ payload: Request, handle: async ({ pair }) => sign(Quote, BigInt(atMs), { pair, cents }) });
 */
export function processData<Payload>(definition: ProcessData<Payload>): Endpoint {
  const { payload, idempotent = true } = definition;
  return endpoint({
    method: 'POST',
    path: '/process_data',
    body: v.strictObject({ payload }),
    idempotent,
    handle: (body, caller) => definition.handle(body.payload, caller),
  });
}

/** The sender of a request. */
export interface Caller {
  /**
   * The address that the outermost trusted proxy saw. Undefined without `TRUSTED_PROXIES`, since behind the
   * enclave's bridge every peer is 127.0.0.1.
   */
  readonly address: string | undefined;
}
