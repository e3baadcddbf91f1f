/**
 * `sui-enclave submit`: sends a request to an enclave, verifies the answer, and calls a Move function of any
 * contract with the answer.
 */

import { Transaction } from '@mysten/sui/transactions';
import { EnclaveClient } from 'sui-enclave/client';
import { ClientError } from 'sui-enclave/client/errors';
import { acceptedImages, findRegistration, readConfig } from 'sui-enclave/sui/objects';
import * as v from 'valibot';
import { runAsProcess } from '../command.ts';
import { enclaveUrl, integer, objectId, path, text } from '../values.ts';
import type { Chain } from './chain.ts';
import { type Input, suiCommand } from './command.ts';
import { checkNotRetired, checkRegistered, readRoots } from './contract.ts';
import { readImage } from './image_to_allow.ts';
import { chooseObjects } from './move_call.ts';
import { functionName } from './move_function.ts';
import { ROOT_OPTION } from './options.ts';
import {
  addSignedCall,
  checkApplication,
  checkObjects,
  chooseSignedType,
  echoes,
  findFunction,
  type MoveFunction,
  type Request,
  readRequest,
} from './signed_call.ts';

/** Schema of JSON. Refuses an integer that a number can't hold exactly. */
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

const ARGUMENTS = { function: { schema: functionName } };

const OPTIONS = {
  url: { value: '<url>', help: 'the URL of the enclave', schema: enclaveUrl, required: true },
  path: {
    value: '<path>',
    help: 'the endpoint to call (default: process_data, or the only endpoint of schema.json for the method)',
    schema: text,
  },
  body: {
    value: '<json>',
    help: 'the JSON to send by POST; without it, the endpoint is called by GET',
    schema: exactJson,
  },
  intent: {
    value: '<number>',
    help: 'the intent code of the signed type (default: the one in schema.json, or 0)',
    schema: integer(0, 255),
  },
  struct: {
    value: '<name>',
    help: 'the Move struct of the signed type, if several structs have its fields',
    schema: text,
  },
  fields: {
    value: '<names>',
    help: "the names of the answer's fields in order, separated by commas, if no struct of the package has them",
    schema: text,
  },
  config: { value: '<id>', help: 'the config (default: the one in the deployment file)', schema: objectId },
  pcrs: {
    value: '<file>',
    help: 'a file with the only registers to accept (default: those that the config allows)',
    schema: path,
  },
  ...ROOT_OPTION,
  object: {
    value: '<id>',
    help: 'an object that the function takes; repeat the option for each further object, in order (default: the objects of the deployment file, by their types)',
    schema: objectId,
    repeated: true,
  },
  'any-answer': {
    help: "accept an answer in which a field differs from the request's property of the same name",
  },
} as const;

type SubmitInvocation = Pick<Input<typeof ARGUMENTS, typeof OPTIONS>, 'args' | 'options' | 'deployments'>;

const readInvocation = ({ args, options, deployments }: SubmitInvocation): Request =>
  readRequest({ ...options, function: args.function }, deployments);

/** Returns a verified answer, and the id of the enclave whose registered key signed it. */
async function requestAnswer(
  invocation: SubmitInvocation,
  chain: Chain,
  request: Request,
  moveFunction: MoveFunction,
) {
  const { url, root, pcrs, intent, struct, fields } = invocation.options;
  const roots = await readRoots(chain, root);
  const pinnedImage = pcrs === undefined ? undefined : await readImage(chain, pcrs);
  const config = await readConfig(chain.client, request.configId);
  checkApplication(moveFunction.call, config);
  checkNotRetired(config);
  const naming = { intent, struct, fields: fields?.split(',') };
  const signedType = chooseSignedType(moveFunction, request.schema, naming);
  const client = new EnclaveClient(url, {
    policy: { images: pinnedImage ? [pinnedImage] : acceptedImages(config, Date.now()) },
    ...(roots && { roots }),
  });
  const expect = invocation.options['any-answer'] ? {} : echoes(request.body, signedType.names);
  const call = client.call(request.path, request.body, signedType.schema, { expect });
  const answer = await call.catch((error: unknown) => {
    if (!(error instanceof ClientError && error.code === 'CLIENT_INTENT')) throw error;
    throw new ClientError(
      'CLIENT_INTENT',
      `${error.message}: name the intent of the signed type by --intent`,
    );
  });
  const registration = await findRegistration(chain.client, config, answer.publicKey);
  checkRegistered(registration, config, url);
  return { config, signedType, answer, enclaveId: registration.enclaveId };
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
  check: readInvocation,
  async run(invocation, chain) {
    const request = readInvocation(invocation);
    const moveFunction = await findFunction(chain, request);
    const objects = chooseObjects(moveFunction.call, invocation.options.object, request.objects);
    checkObjects(moveFunction.call, objects);
    const exchange = await requestAnswer(invocation, chain, request, moveFunction);
    const { answer, config, enclaveId } = exchange;
    const { target } = request;
    const tx = new Transaction();
    addSignedCall(tx, { ...exchange, target, call: moveFunction.call, objects, sender: chain.sender() });
    return await chain.submit(tx, {
      title: `call ${target} with a signed answer`,
      fields: { enclave: enclaveId, config: config.id, answer: answer.data, timestampMs: answer.timestampMs },
      report: ({ created }) => ({ created }),
    });
  },
});

if (import.meta.main) await runAsProcess(main);
