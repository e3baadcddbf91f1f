/** `npm run submit`: asks an enclave, verifies its answer, and calls a Move function of any contract with it. */

import type { Transaction, TransactionArgument } from '@mysten/sui/transactions';
import { quantity } from 'sui-enclave/errors';
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import type { SignedArguments } from 'sui-enclave/sui/signed';
import { integer, runAsProcess } from '../command.ts';
import type { Chain } from './chain.ts';
import { type Input, ROOT_OPTION, type SuiCommand, suiCommand, usageError } from './command.ts';
import type { Application } from './deployments.ts';
import { SuiCommandError } from './errors.ts';
import type { Answer, MoveCall, Role } from './move_call.ts';

interface Request {
  readonly packageId: string;
  readonly module: string;
  readonly name: string;
  readonly url: string;
  readonly path: string;
  readonly body: unknown;
  readonly intent: number;
  readonly configId: string;
}

async function read(input: Input): Promise<Request> {
  const { identifierOf, addressOf } = await import('sui-enclave/sui/values');
  const { url, path = 'process_data', body: text, intent = '0', config } = input.options;
  const words = (input.args['function'] ?? '').split('::');
  const [name = '', module = '', packageId] = words.toReversed();
  if (words.length < 2 || words.length > 3) {
    throw usageError(
      spec,
      '<function> must be PACKAGE::module::function; the package may be left out with --network',
    );
  }
  if (url === undefined) throw usageError(spec, 'give --url');
  if (text === undefined && path === 'process_data')
    throw usageError(spec, 'give --body, such as \'{"payload":{…}}\'');
  identifierOf('the module of <function>', module);
  identifierOf('the name of <function>', name);
  const given = packageId === undefined ? undefined : addressOf('the package of <function>', packageId);
  const noted = given === undefined || config === undefined ? applicationOf(input, given, module) : undefined;
  const configId = config ?? noted?.config?.id;
  if (configId === undefined)
    throw usageError(spec, 'give --config, or a --network whose deployment file has it');
  return {
    packageId: given ?? noted?.package ?? '',
    module,
    name,
    url,
    path,
    body: text === undefined ? undefined : parseBody(text),
    intent: integer('intent', intent, 0, 255),
    configId,
  };
}

/** The application of the deployment file that is meant. */
function applicationOf(
  { deployments }: Input,
  packageId: string | undefined,
  module: string,
): Application | undefined {
  if (deployments === undefined) {
    if (packageId === undefined) throw usageError(spec, 'give the package of <function>, or --network');
    return undefined;
  }
  const all = Object.entries(deployments.read()?.applications ?? {});
  const fitting = all.filter(
    ([name, each]) =>
      (deployments.app === undefined || name === deployments.app) &&
      (packageId === undefined ? each.module === module : [each.package, each.original].includes(packageId)),
  );
  const [only, ...others] = fitting;
  if (only !== undefined && others.length === 0) return only[1];
  throw new SuiCommandError(
    'DEPLOYMENT',
    `${deployments.path} has ${quantity(fitting.length, 'application')} with this package and module: give the package and --config, or --app`,
  );
}

/** JSON, whose integers must be exact. */
function parseBody(text: string): unknown {
  try {
    return JSON.parse(text, (_name, value) => {
      if (Number.isInteger(value) && !Number.isSafeInteger(value)) throw new RangeError();
      return value;
    });
  } catch (error) {
    const why = error instanceof RangeError ? 'hold integers above 2^53 as strings' : 'be JSON';
    throw usageError(spec, `--body must ${why}`);
  }
}

/** The signed fields that repeat a property of the request: a host can send the genuine answer to another request. */
function echoes(body: unknown, fields: readonly string[]): Record<string, unknown> {
  const isObject = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null;
  const whole = isObject(body) ? body : {};
  const asked = isObject(whole['payload']) ? whole['payload'] : whole;
  return Object.fromEntries(Object.entries(asked).filter(([name]) => fields.includes(name)));
}

async function functionOf(chain: Chain, { packageId, module: moduleName, name }: Request) {
  const { readModule } = await import('sui-enclave-move-bytecode/module_bytecode');
  const { moveCall } = await import('./move_call.ts');
  const { originalId, modules } = await chain.package(packageId);
  const readOf = (bytes: Uint8Array) => {
    try {
      return readModule(bytes, originalId);
    } catch (cause) {
      const { message } = cause as RangeError;
      throw new SuiCommandError('FUNCTION', `a module of ${packageId} can't be read: ${message}`, { cause });
    }
  };
  const module = modules.map(readOf).find((each) => each.name === moduleName);
  if (module === undefined) {
    throw new SuiCommandError('FUNCTION', `the package ${packageId} has no module ${moduleName}`);
  }
  return { module, call: moveCall(module, name) };
}

/** @throws WrongObjectTypeError */
async function checkApplication({ application }: MoveCall, config: EnclaveConfig): Promise<void> {
  if (/^T\d+$/.test(application) || application === config.application) return;
  const { WrongObjectTypeError } = await import('sui-enclave/sui/errors');
  throw new WrongObjectTypeError(config.id, `for ${application}`, `for ${config.application}`);
}

/** A verified answer, and the id of the enclave whose registered key signed it. */
async function ask(
  input: Input,
  chain: Chain,
  request: Request,
  found: Awaited<ReturnType<typeof functionOf>>,
) {
  const { EnclaveClient } = await import('sui-enclave/client');
  const { findRegistration, readConfig } = await import('sui-enclave/sui/objects');
  const { checkNotRetired, checkRegistered, readImage, readRoots } = await import('./contract.ts');
  const { signedTypeOf } = await import('./move_call.ts');
  const roots = await readRoots(chain, input.options);
  const pinned = input.options['pcrs'] === undefined ? undefined : await readImage(chain, input.options);
  const config = await readConfig(chain.client, request.configId);
  await checkApplication(found.call, config);
  checkNotRetired(config);
  const { struct, fields } = input.options;
  const naming = { intent: request.intent, struct, fields: fields?.split(',') };
  const { schema, names } = signedTypeOf(found.module, found.call, naming);
  const client = new EnclaveClient(request.url, {
    policy: { images: [pinned ?? config.image] },
    ...(roots && { roots }),
  });
  const expect = input.flags.has('any-answer') ? {} : echoes(request.body, names);
  const answer = await client.call(request.path, request.body, schema, { expect });
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
  asked: Awaited<ReturnType<typeof ask>>,
  { data, timestampMs, signature }: SignedArguments<Answer>,
): void {
  const left = [...objects];
  const argument = (role: Role) => {
    switch (role.kind) {
      case 'value':
        return data[asked.names[role.index] ?? ''] as TransactionArgument;
      case 'timestamp':
        return timestampMs;
      case 'signature':
        return signature;
      case 'enclave':
        return tx.object(asked.enclaveId);
      case 'config':
        return tx.object(asked.config.id);
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
    typeArguments: Array.from({ length: call.typeParameters }, () => asked.config.application),
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
    throw usageError(
      spec,
      `the function takes ${quantity(types.length, 'object')} by --object, in this order: ${needed}`,
    );
  }
  if (typeParameters > 1 || (typeParameters === 1 && application !== 'T0')) {
    throw new SuiCommandError('FUNCTION', 'the function has type parameters other than that of the Enclave');
  }
}

const spec: SuiCommand = {
  name: 'submit',
  purpose:
    'Asks an enclave, verifies that a registered key signed the answer, and calls a Move function with it:\nPACKAGE::module::function. Its parameters, read from the package on chain, must be the signed fields in order, then\ntimestamp_ms: u64 and sig: &vector<u8>; Enclave, EnclaveConfig, Clock, Random and other objects may stand anywhere.\nReturned objects go to the sender. With --network, the package may be left out.',
  positionals: ['function'],
  options: {
    url: ['<url>', 'the enclave'],
    path: ['<path>', 'its endpoint (process_data)'],
    body: ['<json>', 'the request; without it, the endpoint is called by GET'],
    intent: ['<number>', 'the intent code of the signed type (0)'],
    struct: ['<name>', 'the struct of the signed type, where several in the module have its fields'],
    fields: ['<names>', "the answer's fields in order, with commas, where no struct names them"],
    config: ['<id>', "the config, in place of the deployment file's"],
    pcrs: ['<file>', 'registers that the enclave must have, besides those of the config'],
    ...ROOT_OPTION,
  },
  lists: { object: ['<id>', 'an object that the function takes besides; may be repeated, in order'] },
  flags: { 'any-answer': "accept an answer whose fields differ from the request's of the same name" },
  async plan(input) {
    const { packageId, module, name, url, path, configId } = await read(input);
    return [
      `read the signature of ${packageId}::${module}::${name}, and the config ${configId}`,
      `ask ${url} at ${path}, and verify the answer by its attestation for the registers of the config`,
      'find the enclave whose registered key signed it; stop if no registered key did',
      `call ${packageId}::${module}::${name} with the signed fields, and transfer what it returns to the sender`,
    ];
  },
  async run(input, chain) {
    const request = await read(input);
    const { Transaction } = await import('@mysten/sui/transactions');
    const { signedArguments } = await import('sui-enclave/sui/signed');
    const found = await functionOf(chain, request);
    const objects = input.lists['object'] ?? [];
    checkObjects(found.call, objects);
    const asked = await ask(input, chain, request, found);
    const { answer, config, enclaveId } = asked;
    const target = `${request.packageId}::${request.module}::${request.name}`;
    const tx = new Transaction();
    const sender = await chain.sender();
    addCall(
      tx,
      { target, call: found.call, objects, sender },
      asked,
      signedArguments(tx, answer, asked.schema),
    );
    return await chain.submit(tx, {
      title: `call ${target} with a signed answer`,
      fields: { enclave: enclaveId, config: config.id, answer: answer.data, timestampMs: answer.timestampMs },
      report: ({ created }) => ({ created }),
    });
  },
};

export const main = suiCommand(spec);

if (import.meta.main) await runAsProcess(main);
