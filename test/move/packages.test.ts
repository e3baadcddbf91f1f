import { describe, expect, test } from 'vitest';
import { frameworkOf, packageNames, testPackage } from '../../scripts/move/packages.ts';
import { enclaveVectors, realDocumentTests, weatherVectors } from './vectors.ts';

const framework = frameworkOf(process.env);

/** Public functions, and errors, of a Move module. */
describe('the Move modules generated from test/vectors', () => {
  test.each([
    ['enclave/tests/vectors.move', enclaveVectors],
    ['enclave/tests/real_document_cli_tests.move', realDocumentTests],
    ['weather/tests/vectors.move', weatherVectors],
  ])('move/%s is up to date', async (path, generate) => {
    await expect(generate()).toMatchFileSnapshot(`../../move/${path}`);
  });
});
