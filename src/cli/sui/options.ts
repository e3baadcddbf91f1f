/** The options of the commands that talk to Sui. */
import * as v from 'valibot';
import type { OptionValues } from '../command_line.ts';
import { objectId, path, text } from '../values.ts';
import { NETWORKS } from './network.ts';

/** Options that all commands have. */
export const COMMON = {
  network: {
    value: '<name>',
    help: NETWORKS.join(', '),
    schema: v.picklist(NETWORKS, `must be one of ${NETWORKS.join(', ')}`),
    variable: 'SUI_ENCLAVE_NETWORK',
  },
  app: {
    value: '<name>',
    help: 'the application, if deployments/<network>.json has several',
    schema: text,
  },
  'rpc-url': {
    value: '<url>',
    help: 'a gRPC-web node (default: the public node of --network)',
    schema: text,
  },
  address: {
    value: '<address>',
    help: "the sender; the command signs with its key in the Sui CLI's keystore",
    schema: objectId,
  },
  keystore: { value: '<file>', help: "the keystore (default: the Sui CLI's own)", schema: path },
  'gas-budget': {
    value: '<mist>',
    help: 'the most that the transaction may cost, in MIST (default: what the node proposes, up to 1 SUI)',
    schema: v.pipe(
      v.string(),
      v.regex(/^[1-9][0-9]{0,18}$/, 'must be an integer number of MIST (1 SUI is 1000000000)'),
      v.transform((mist) => BigInt(mist)),
    ),
  },
  unsigned: { help: 'print the transaction in base64, for a wallet or a multisig to sign' },
  'dry-run': { help: 'print the commands of the transaction, have the node simulate it, and send nothing' },
} as const;

/** Options of a command that signs nothing. */
export const READING = {
  network: COMMON.network,
  app: COMMON.app,
  'rpc-url': COMMON['rpc-url'],
  'dry-run': COMMON['dry-run'],
} as const;

/** The values of the options that all commands have. */
export type CommonOptions = Partial<OptionValues<typeof COMMON>>;

/** Option for the PCR file. */
export const PCRS_OPTION = {
  pcrs: { value: '<file>', help: 'the registers of the image', schema: path, default: 'out/nitro.pcrs' },
} as const;

/**
 * The option of commands that replace the registers. `overlapEnd` converts its minutes into a time.
 */
export const OVERLAP_OPTION = {
  overlap: {
    value: '<minutes>',
    help: 'let contracts accept the enclaves of the present version for this many more minutes (at most 1439, a minute less than a day)',
    schema: v.pipe(
      v.string(),
      v.regex(/^[1-9][0-9]{0,3}$/, 'must be a whole number of minutes from 1 to 1439'),
      v.transform(Number),
      // The contract's limit is a day by the chain's clock, which may be behind this machine's.
      v.maxValue(1439, 'must be a whole number of minutes from 1 to 1439'),
    ),
  },
} as const;

/** Option for the source of the image, in commands that write registers. */
export const SOURCE_OPTION = {
  'source-url': {
    value: '<url>',
    help: 'the public repository that the image was built from; the config then names it with the commit and the folder (default: no source)',
    schema: v.pipe(v.string(), v.regex(/^[ -~]{1,200}$/, 'must be 1 to 200 printable ASCII characters')),
  },
} as const;

/** The flag of commands that write registers. */
export const EXPERIMENTAL_FLAG = {
  experimental: {
    help: 'allow an image that was not built from a tagged release (CHANNEL=stable), even on a real network',
  },
} as const;

/** The option for a file in place of the package's own `Published.toml`. */
export const PUBLISHED_OPTION = {
  published: {
    value: '<file>',
    help: "the file that records the package's ids (default: move/<package>/Published.toml)",
    schema: path,
  },
} as const;

/** The option for enclaves that are attested under a root other than AWS's. */
export const ROOT_OPTION = {
  root: {
    value: '<file>',
    help: "trust the certificates of this PEM file in place of AWS's root (development)",
    schema: path,
    variable: 'SUI_ENCLAVE_ROOT',
  },
} as const;
