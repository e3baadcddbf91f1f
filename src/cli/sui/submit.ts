/**
 * `sui-enclave submit`: asks an enclave, verifies its answer, and calls a Move function of any contract with
 * it.
 */

import { Transaction, type TransactionArgument } from '@mysten/sui/transactions';
import { type AppSchema, EnclaveClient } from 'sui-enclave/client';
import { ClientError } from 'sui-enclave/client/errors';
import { WrongObjectTypeError } from 'sui-enclave/sui/errors';
import { acceptedImages, type EnclaveConfig, findRegistration, readConfig } from 'sui-enclave/sui/objects';
import { type SignedArguments, signedArguments } from 'sui-enclave/sui/signed';
import { quantity } from 'sui-enclave/wording';
import { readModule } from 'sui-enclave-devnet/bytecode/module_bytecode';
import * as v from 'valibot';
import { runAsProcess, UsageError } from '../command.ts';
import { enclaveUrl, integer, objectId, path, text } from '../values.ts';
import { choosePath, chooseSigned, findSchema } from './app_schema.ts';
import type { Chain } from './chain.ts';
import { type Input, suiCommand } from './command.ts';
import { checkNotRetired, checkRegistered, readImage, readRoots } from './contract.ts';
import { definedType } from './defined_types.ts';
import type { Application } from './deployments.ts';
import { SuiCommandError } from './errors.ts';
import {
  type Answer,
  chooseObjects,
  createSignedType,
  type MoveCall,
  moveCall,
  type Role,
} from './move_call.ts';
import { ROOT_OPTION } from './options.ts';

/** JSON, whose integers must be exact. */
const exactJson = v.pipe(
  v.string(),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    try {
      return JSON.parse(dataset.value, (_name, value) => {
        if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new RangeError();
        return value;
      }) as unknown;
    } catch (error) {
      const isRange = error instanceof RangeError;
      addIssue({ message: isRange ? 'must hold integers above 2^53 as strings' : 'must be JSON' });
      return NEVER;
    }
  }),
);

interface Request {
  readonly packageId: string;
  readonly module: string;
  readonly name: string;
  readonly url: string;
  readonly path: string;
  readonly body: unknown;
  /** Intent of the answer. Undefined means the intent of the schema, or 0. */
  readonly intent: number | undefined;
  readonly schema: AppSchema | undefined;
  readonly configId: string;
  /** The objects of the deployment file. */
  readonly objects: NonNullable<Application['objects']>;
}

const FUNCTION = /^(?:(0x[0-9a-f]{64})::)?([a-zA-Z]\w{0,127})::([a-zA-Z]\w{0,127})$/i;

const ARGUMENTS = {
  function: {
    schema: v.pipe(
      v.string(),
      v.regex(
        FUNCTION,
        'must be PACKAGE::module::function, the package as 0x and 64 hexadecimal digits; it may be left out with --network',
      ),
    ),
  },
};

const OPTIONS = {
  url: { value: '<url>', help: 'the URL of the enclave', schema: enclaveUrl, required: true },
  path: {
    value: '<path>',
    help: 'the endpoint to call (default: process_data, or the only one of schema.json)',
    schema: text,
  },
  body: {
    value: '<json>',
    help: 'the JSON to send by POST; without it, the endpoint is called by GET',
    schema: exactJson,
  },
  intent: {
    value: '<number>',
    help: 'the intent code of the signed type (default: that of schema.json, or 0)',
    schema: integer(0, 255),
  },
  struct: {
    value: '<name>',
    help: 'the Move struct of the signed type, if several structs have its fields',
    schema: text,
  },
  fields: {
    value: '<names>',
    help: "the names of the answer's fields in order, with commas, if no struct of the package has them",
    schema: text,
  },
  config: { value: '<id>', help: 'the config (default: that of the deployment file)', schema: objectId },
  pcrs: {
    value: '<file>',
    help: 'a file of registers that the enclave must have, in addition to those of the config',
    schema: path,
  },
  ...ROOT_OPTION,
  object: {
    value: '<id>',
    help: 'one of the other objects that the function takes; repeat it in their order (default: those of the deployment file, by their types)',
    schema: objectId,
    repeated: true,
  },
  'any-answer': {
    help: "accept an answer in which a field differs from the request's property of the same name",
  },
} as const;

type SubmitInput = Pick<Input<typeof ARGUMENTS, typeof OPTIONS>, 'args' | 'options' | 'deployments'>;

function read(input: SubmitInput): Request {
  const { url, body, intent, config } = input.options;
  const [, id, module = '', name = ''] = FUNCTION.exec(input.args.function) ?? [];
  const enclaveId = id?.toLowerCase();
  const isNamed = enclaveId !== undefined && config !== undefined;
  const noted = isNamed ? undefined : findApplication(input, enclaveId, module);
  const configId = config ?? noted?.[1].config?.id;
  if (configId === undefined) {
    throw new UsageError('give --config, or a --network whose deployment file has the config');
  }
  const { package: notedPackage = '', objects = [] } = noted?.[1] ?? {};
  const schema = findSchema(noted?.[0]);
  const method = body === undefined ? 'GET' : 'POST';
  const path = input.options.path ?? (schema && choosePath(schema, method)) ?? 'process_data';
  if (body === undefined && /^\/?process_data$/.test(path)) {
    throw new UsageError('give --body, such as \'{"payload":{…}}\'');
  }
  const packageId = enclaveId ?? notedPackage;
  return { packageId, module, name, url, path, body, intent, schema, configId, objects };
}

/** Returns the application of the deployment file that the arguments name. */
function findApplication(
  { deployments }: SubmitInput,
  packageId: string | undefined,
  module: string,
): [name: string, Application] | undefined {
  if (deployments === undefined) {
    if (packageId === undefined) throw new UsageError('give the package of <function>, or --network');
    return undefined;
  }
  const all = [...(deployments.read()?.applications ?? [])];
  const fitting = all.filter(
    ([name, app]) =>
      (deployments.app === undefined || name === deployments.app) &&
      (packageId === undefined ? app.module === module : [app.package, app.original].includes(packageId)),
  );
  const [only, ...moreFitting] = fitting;
  if (only !== undefined && moreFitting.length === 0) return only;
  throw new SuiCommandError(
    'DEPLOYMENT',
    `${deployments.path} has ${quantity(fitting.length, 'application')} with this package and module: give the package and --config, or --app`,
  );
}

/**
 * Returns the signed fields that repeat a property of the request. They must match, since a host can send a
 * genuine answer to another request.
 */
function echoes(body: unknown, fields: readonly string[]): Record<string, unknown> {
  const isObject = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null;
  const requestBody = isObject(body) ? body : {};
  const payload = isObject(requestBody['payload']) ? requestBody['payload'] : requestBody;
  return Object.fromEntries(Object.entries(payload).filter(([name]) => fields.includes(name)));
}

async function findFunction(chain: Chain, { packageId, module: moduleName, name }: Request) {
  const packageVersion = await chain.package(packageId);
  const { originalId, modules } = packageVersion;
  const readModuleOrNull = (bytes: Uint8Array) => {
    try {
      return readModule(bytes, originalId);
    } catch (cause) {
      const { message } = cause as RangeError;
      throw new SuiCommandError('FUNCTION', `a module of ${packageId} can't be read: ${message}`, { cause });
    }
  };
  const all = modules.map(readModuleOrNull);
  const module = all.find(({ name }) => name === moduleName);
  if (module === undefined) {
    throw new SuiCommandError('FUNCTION', `the package ${packageId} has no module ${moduleName}`);
  }
  const otherModules = all.filter((candidate) => candidate !== module);
  const call = moveCall(module, name, otherModules);
  const roles: Role[] = [];
  for (const role of call.roles) {
    roles.push(
      role.kind === 'object' ? { ...role, type: await definedType(chain, packageVersion, role.type) } : role,
    );
  }
  const application = await definedType(chain, packageVersion, call.application);
  return { module, others: otherModules, call: { ...call, roles, application } };
}

/** @throws WrongObjectTypeError */
async function checkApplication({ application }: MoveCall, config: EnclaveConfig): Promise<void> {
  if (/^T\d+$/.test(application) || application === config.application) return;
  throw new WrongObjectTypeError(config.id, `for ${application}`, `for ${config.application}`);
}

/** Returns a verified answer, and the id of the enclave whose registered key signed it. */
async function ask(
  input: SubmitInput,
  chain: Chain,
  request: Request,
  moveFunction: Awaited<ReturnType<typeof findFunction>>,
) {
  const roots = await readRoots(chain, input.options.root);
  const pinned = input.options.pcrs === undefined ? undefined : await readImage(chain, input.options.pcrs);
  const config = await readConfig(chain.client, request.configId);
  await checkApplication(moveFunction.call, config);
  checkNotRetired(config);
  const { struct, fields } = input.options;
  const signed = request.schema && chooseSigned(request.schema, moveFunction.call);
  // The schema's names are used only if the command line gives none.
  const fromSchema = struct === undefined ? signed?.names : undefined;
  const naming = {
    intent: request.intent ?? signed?.intent ?? 0,
    struct,
    fields: fields?.split(',') ?? fromSchema,
  };
  const { schema, names } = createSignedType(
    moveFunction.module,
    moveFunction.call,
    naming,
    moveFunction.others,
  );
  const client = new EnclaveClient(request.url, {
    policy: { images: pinned ? [pinned] : acceptedImages(config, Date.now()) },
    ...(roots && { roots }),
  });
  const expect = input.options['any-answer'] ? {} : echoes(request.body, names);
  const answer = await client.call(request.path, request.body, schema, { expect }).catch((error: unknown) => {
    if (!(error instanceof ClientError && error.code === 'CLIENT_INTENT')) throw error;
    throw new ClientError(
      'CLIENT_INTENT',
      `${error.message}: name the intent of the signed type by --intent`,
    );
  });
  const registration = await findRegistration(chain.client, config, answer.publicKey);
  checkRegistered(registration, config, request.url);
  return { config, schema, names, answer, enclaveId: registration.enclaveId };
}

/** Adds the call to the transaction, and gives the objects that it returns to the sender. */
function addCall(
  tx: Transaction,
  {
    target,
    call,
    objects,
    sender,
  }: { target: string; call: MoveCall; objects: readonly string[]; sender: string },
  exchange: Awaited<ReturnType<typeof ask>>,
  { data, timestampMs, signature }: SignedArguments<Answer>,
): void {
  const left = [...objects];
  const argument = (role: Role) => {
    switch (role.kind) {
      case 'value':
        return data[exchange.names[role.index] ?? ''] as TransactionArgument;
      case 'timestamp':
        return timestampMs;
      case 'signature':
        return signature;
      case 'enclave':
        return tx.object(exchange.enclaveId);
      case 'config':
        return tx.object(exchange.config.id);
      case 'clock':
        return tx.object.clock();
      case 'random':
        return tx.object.random();
      case 'object':
        return tx.object(left.shift() ?? '');
    }
  };
  const results = tx.moveCall({
    target,
    typeArguments: Array.from({ length: call.typeParameters }, () => exchange.config.application),
    arguments: call.roles.map(argument),
  });
  const kept = call.returns.flatMap((isKept, index) =>
    isKept ? [results[index] as TransactionArgument] : [],
  );
  if (kept.length > 0) tx.transferObjects(kept, sender);
}

/** @throws UsageError, SuiCommandError: FUNCTION */
function checkObjects({ roles, typeParameters, application }: MoveCall, objects: readonly string[]): void {
  const types = roles.flatMap((role) => (role.kind === 'object' ? [role.type] : []));
  if (types.length !== objects.length) {
    const needed = types.length === 0 ? 'none' : types.join(', ');
    throw new UsageError(
      `the function takes ${quantity(types.length, 'object')} by --object, in this order: ${needed}`,
    );
  }
  if (typeParameters > 1 || (typeParameters === 1 && application !== 'T0')) {
    throw new SuiCommandError('FUNCTION', 'the function has type parameters other than that of the Enclave');
  }
}

export const main = suiCommand({
  name: 'submit',
  purpose: `Sends a request to an enclave, verifies that a registered key signed the answer, and calls a Move function with it:
PACKAGE::module::function, or module::function of the package in the deployment file of --network. The parameters of the
function, read from the chain, must be the signed fields in order, then timestamp_ms: u64 and sig: &vector<u8>; Enclave,
EnclaveConfig, Clock, Random and other objects may be anywhere among them. Returned objects go to the sender.`,
  example:
    'weather::update_weather --url https://weather.example --body \'{"payload":{"location":"Oslo"}}\' --network testnet',
  ids: [],
  arguments: ARGUMENTS,
  options: OPTIONS,
  check: read,
  async run(input, chain) {
    const request = read(input);
    const moveFunction = await findFunction(chain, request);
    const objects = chooseObjects(moveFunction.call, input.options.object, request.objects);
    checkObjects(moveFunction.call, objects);
    const exchange = await ask(input, chain, request, moveFunction);
    const { answer, config, enclaveId } = exchange;
    const target = `${request.packageId}::${request.module}::${request.name}`;
    const tx = new Transaction();
    const sender = chain.sender();
    addCall(
      tx,
      { target, call: moveFunction.call, objects, sender },
      exchange,
      signedArguments(tx, answer, exchange.schema),
    );
    return await chain.submit(tx, {
      title: `call ${target} with a signed answer`,
      fields: { enclave: enclaveId, config: config.id, answer: answer.data, timestampMs: answer.timestampMs },
      report: ({ created }) => ({ created }),
    });
  },
});

if (import.meta.main) await runAsProcess(main);
