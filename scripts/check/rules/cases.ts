/** Lists transactions that a network accepts or refuses, with their outcomes. */
import { ARGUMENT_CASES } from './argument_cases.ts';
import { CALL_CASES } from './call_cases.ts';
import type { Case } from './case.ts';
import { OBJECT_CASES } from './object_cases.ts';

export const CASES: readonly Case[] = [...ARGUMENT_CASES, ...OBJECT_CASES, ...CALL_CASES];
