/** Checks that the model describes structs as full nodes do, for comparisons with signed types. */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { afterAll, beforeAll, expect, test } from 'vitest';
import schema from '../../../src/apps/weather/schema.json' with { type: 'json' };
import { modelChainId } from '../../../src/cli/sui/network.ts';
import { readSchema } from '../../../src/library/client/index.ts';
import { structDifference } from '../../../src/library/sui/index.ts';
import { ChainFixture } from '../cli/sui/chain_fixture.ts';

let fixture: ChainFixture;
let client: SuiGrpcClient;
let packageId: string;
beforeAll(async () => {
  fixture = await ChainFixture.start();
  fixture.node.chainId = modelChainId(Uint8Array.of(1, 2, 3, 4));
  client = new SuiGrpcClient({ network: 'localnet', baseUrl: fixture.node.url });
  packageId = String((await fixture.done('publish', 'weather', '--network', 'localnet'))['package']);
});
afterAll(() => fixture.close());

const datatype = async (moduleName: string, name: string, id = packageId) =>
  (await client.movePackageService.getDatatype({ packageId: id, moduleName, name })).response.datatype;

test('the struct that weather signs equals the struct of its contract', async () => {
  const [signedType] = readSchema(schema).signs;
  const onChain = await datatype('weather', 'WeatherResponse');
  if (!signedType || !onChain) throw new Error('a struct is missing');
  expect(structDifference(signedType, onChain)).toBeUndefined();
  const reordered = { ...signedType, fields: signedType.fields.toReversed() };
  expect(structDifference(reordered, onChain)).toContain(
    'is signed as temperature, but on chain it is location',
  );
});

test('type parameters are described, and vectors and options with the types of their elements', async () => {
  const config = await datatype('enclave', 'EnclaveConfig');
  expect(config).toMatchObject({
    typeName: `${packageId}::enclave::EnclaveConfig`,
    typeParameters: [{ isPhantom: true }],
  });
  const field = (name: string) => config?.fields.find((candidate) => candidate.name === name)?.type;
  expect(field('registrars')).toMatchObject({
    type: 10,
    typeName: expect.stringMatching(/::vec_set::VecSet$/),
    typeParameterInstantiation: [{ type: 10, typeName: expect.stringMatching(/::object::ID$/) }],
  });
  expect(field('max_key_age_ms')).toMatchObject({
    type: 10,
    typeName: expect.stringMatching(/::option::Option$/),
    typeParameterInstantiation: [{ type: 6 }],
  });
  const enclave = await datatype('enclave', 'Enclave');
  expect(enclave?.fields.map(({ type }) => type)).toContainEqual(
    expect.objectContaining({ type: 9, typeParameterInstantiation: [expect.objectContaining({ type: 3 })] }),
  );
});

test('a package is found by a shorter form of its id', async () => {
  expect(await datatype('weather', 'WeatherResponse', packageId.slice('0x'.length))).toEqual(
    await datatype('weather', 'WeatherResponse'),
  );
});

test('a missing module or struct is not found', async () => {
  await expect(datatype('weather', 'None')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await expect(datatype('none', 'WeatherResponse')).rejects.toMatchObject({ code: 'NOT_FOUND' });
});
