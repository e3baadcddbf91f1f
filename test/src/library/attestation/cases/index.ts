import type { Case } from './case.ts';
import { chainCases } from './chain.ts';
import { envelopeCases } from './envelope.ts';
import { payloadCases } from './payload.ts';
import { policyCases } from './policy.ts';
import { realCases } from './real.ts';

/** Every case, by its subject. */
export const cases: Record<string, Case[]> = {
  'real documents': realCases,
  envelope: envelopeCases,
  payload: payloadCases,
  chain: chainCases,
  policy: policyCases,
};
