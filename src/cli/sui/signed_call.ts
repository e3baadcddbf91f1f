/** Calls a Move function with an answer that an enclave signed. `submit` and `post` share this code. */
import type {
  Transaction,
  TransactionArgument,
  TransactionObjectArgument,
  TransactionResult,
} from '@mysten/sui/transactions';
import type { AppSchema } from 'sui-enclave/client';
import { WrongObjectTypeError } from 'sui-enclave/sui/errors';
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import { type SignedArguments, type SubmittedAnswer, signedArguments } from 'sui-enclave/sui/signed';
import type { ModuleInterface } from 'sui-enclave-devnet/bytecode/module_bytecode';
import { UsageError } from '../command.ts';
import { choosePath, chooseSigned, findSchema } from './app_schema.ts';
import type { Chain } from './chain.ts';
import { resolveType } from './defined_types.ts';
import type { Application, Deployments } from './deployments.ts';
import { SuiCommandError } from './errors.ts';
import {
  type Answer,
  createSignedType,
  type MoveCall,
  type Naming,
  type Role,
  readMoveCall,
} from './move_call.ts';
import {
  checkObjectCount,
  findEntry,
  parseFunctionName,
  readModules,
  resolveObjectTypes,
} from './move_function.ts';

/** Properties of a request in a command line or a file. */
export interface RequestNames {
  /** Matches `functionName`. */
  readonly function: string;
  readonly path?: string | undefined;
  readonly body?: unknown;
  readonly config?: string | undefined;
}

/** The request to an enclave, and the function that takes the answer. */
export interface Request {
  readonly packageId: string;
  readonly module: string;
  readonly name: string;
  /** `package::module::function`. */
  readonly target: string;
  readonly path: string;
  /** Body of a POST, which is sent as JSON; undefined for a GET. */
  readonly body: unknown;
  readonly schema: AppSchema | undefined;
  readonly configId: string;
  /** The objects of the deployment file. */
  readonly objects: NonNullable<Application['objects']>;
}

/**
 * Completes a request from the deployment file and from `schema.json`.
 *
 * @throws UsageError; SuiCommandError: DEPLOYMENT; ClientError: CLIENT_SCHEMA
 */
export function readRequest(names: RequestNames, deployments: Deployments | undefined): Request {
  const { body, config } = names;
  const { packageId: optionPackageId, module, name } = parseFunctionName(names.function);
  const isComplete = optionPackageId !== undefined && config !== undefined;
  const entry = isComplete ? undefined : findEntry(deployments, optionPackageId, module);
  const configId = config ?? entry?.[1].config?.id;
  if (configId === undefined) {
    throw new UsageError('give --config, or a --network whose deployment file has the config');
  }
  const { package: recordedPackage = '', objects = [] } = entry?.[1] ?? {};
  const schema = findSchema(entry?.[0]);
  const method = body === undefined ? 'GET' : 'POST';
  const path = names.path ?? (schema && choosePath(schema, method)) ?? 'process_data';
  if (body === undefined && /^\/?process_data$/.test(path)) {
    throw new UsageError('give --body, such as \'{"payload":{…}}\'');
  }
  const packageId = optionPackageId ?? recordedPackage;
  const target = `${packageId}::${module}::${name}`;
  return { packageId, module, name, target, path, body, schema, configId, objects };
}

/**
 * Returns the properties of the request that are also signed fields. The answer must repeat their values:
 * otherwise, a host could send a genuine answer to another request.
 */
export function echoes(body: unknown, fields: readonly string[]): Record<string, unknown> {
  const isObject = (value: unknown): value is Record<string, unknown> =>
    typeof value === 'object' && value !== null;
  const requestBody = isObject(body) ? body : {};
  const payload = isObject(requestBody['payload']) ? requestBody['payload'] : requestBody;
  return Object.fromEntries(Object.entries(payload).filter(([name]) => fields.includes(name)));
}

/** A function of a package on chain, with the modules that may define the type that it verifies. */
export interface MoveFunction {
  readonly module: ModuleInterface;
  readonly otherModules: readonly ModuleInterface[];
  readonly call: MoveCall;
}

/** Reads a function from the chain. @throws SuiCommandError: FUNCTION; SuiError */
export async function findFunction(
  chain: Chain,
  { packageId, module: moduleName, name }: Pick<Request, 'packageId' | 'module' | 'name'>,
): Promise<MoveFunction> {
  const { packageVersion, module, otherModules } = await readModules(chain, packageId, moduleName);
  const call = readMoveCall(module, name, otherModules);
  const roles = await resolveObjectTypes(chain, packageVersion, call.roles);
  const application = await resolveType(chain, packageVersion, call.application);
  return { module, otherModules, call: { ...call, roles, application } };
}

/** @throws WrongObjectTypeError */
export function checkApplication({ application }: MoveCall, config: EnclaveConfig): void {
  if (/^T\d+$/.test(application) || application === config.application) return;
  throw new WrongObjectTypeError(config.id, `for ${application}`, `for ${config.application}`);
}

/** @throws UsageError, SuiCommandError: FUNCTION */
export function checkObjects(call: MoveCall, objects: readonly string[]): void {
  checkObjectCount(call, objects);
  const { typeParameters, application } = call;
  if (typeParameters > 1 || (typeParameters === 1 && application !== 'T0')) {
    throw new SuiCommandError('FUNCTION', 'the function has type parameters other than that of the Enclave');
  }
}

/**
 * Returns the type that the enclave signs for a function. The schema's intent and names apply only if
 * the caller gives none.
 */
export function chooseSignedType(
  { module, otherModules, call }: MoveFunction,
  schema: AppSchema | undefined,
  { intent, struct, fields }: { readonly [Name in keyof Naming]?: Naming[Name] | undefined },
): ReturnType<typeof createSignedType> {
  const signed = schema && chooseSigned(schema, call);
  const schemaNames = struct === undefined ? signed?.names : undefined;
  const naming = { intent: intent ?? signed?.intent ?? 0, struct, fields: fields ?? schemaNames };
  return createSignedType(module, call, naming, otherModules);
}

/** A signed answer, and the Move call that takes it. */
export interface SignedCall {
  /** `package::module::function`. */
  readonly target: string;
  readonly call: MoveCall;
  /** The type that the enclave signs. */
  readonly signedType: ReturnType<typeof createSignedType>;
  readonly answer: SubmittedAnswer<Answer>;
  readonly enclaveId: string;
  readonly config: EnclaveConfig;
  /** Ids of the other objects that the function takes, in its order. */
  readonly objects: readonly string[];
  /** Address that gets the objects that the function returns. */
  readonly sender: string;
}

/**
 * Function that returns the argument for an object. `isMutable` is whether the called function may change it.
 */
export type Refer = (objectId: string, isMutable: boolean) => TransactionObjectArgument;

export const CLOCK = '0x6';
export const RANDOM = '0x8';

/** Returns the argument for an object, whose version the node adds. */
export function referById(tx: Transaction, objectId: string): TransactionObjectArgument {
  if (objectId === CLOCK) return tx.object.clock();
  return objectId === RANDOM ? tx.object.random() : tx.object(objectId);
}

/** Adds the call to the transaction, and a transfer of the returned objects to the sender. */
export function addSignedCall(
  tx: Transaction,
  { target, call, signedType, answer, enclaveId, config, objects, sender }: SignedCall,
  refer: Refer = (objectId) => referById(tx, objectId),
): void {
  const { data, timestampMs, signature }: SignedArguments<Answer> = signedArguments(
    tx,
    answer,
    signedType.schema,
  );
  const remainingObjects = [...objects];
  const createArgument = (role: Role): TransactionArgument => {
    switch (role.kind) {
      case 'value':
        return data[signedType.names[role.index] ?? ''] as TransactionArgument;
      case 'timestamp':
        return timestampMs;
      case 'signature':
        return signature;
      case 'enclave':
        return refer(enclaveId, false);
      case 'config':
        return refer(config.id, false);
      case 'clock':
        return refer(CLOCK, false);
      case 'random':
        return refer(RANDOM, false);
      case 'object':
        return refer(remainingObjects.shift() ?? '', role.isMutable);
    }
  };
  const returnedValues = tx.moveCall({
    target,
    typeArguments: Array.from({ length: call.typeParameters }, () => config.application),
    arguments: call.roles.map(createArgument),
  });
  transferReturned(tx, returnedValues, call, sender);
}

/** Adds a transfer, to the sender, of the objects that a function returns. */
export function transferReturned(
  tx: Transaction,
  returnedValues: TransactionResult,
  { returns }: Pick<MoveCall, 'returns'>,
  sender: string,
): void {
  const objects = returns.flatMap((isTransferable, index) =>
    isTransferable ? [returnedValues[index] as TransactionArgument] : [],
  );
  if (objects.length > 0) tx.transferObjects(objects, sender);
}
