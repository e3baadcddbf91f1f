/** Collects the instructions that stay within a function: all except calls and returns. */
import type { Instructions } from './frame.ts';
import { BOOLEANS } from './instructions/booleans.ts';
import { CONSTANTS } from './instructions/constants.ts';
import { CONTROL } from './instructions/control.ts';
import { INTEGERS } from './instructions/integers.ts';
import { LOCALS } from './instructions/locals.ts';
import { REFERENCES } from './instructions/references.ts';
import { STRUCTS } from './instructions/structs.ts';
import { VARIANTS } from './instructions/variants.ts';
import { VECTORS } from './instructions/vectors.ts';

export const INSTRUCTIONS: Instructions = {
  ...CONSTANTS,
  ...LOCALS,
  ...REFERENCES,
  ...STRUCTS,
  ...VARIANTS,
  ...VECTORS,
  ...INTEGERS,
  ...BOOLEANS,
  ...CONTROL,
};
