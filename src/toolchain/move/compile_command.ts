/**
 * `sui-enclave compile`: compiles a package of `move/` to a file, for a machine that has the key, but no
 * compiler.
 */
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { digestBytecodeFile, formatBytecodeFile } from 'sui-enclave-cli/sui/bytecode_file';
import { SuiCommandError } from 'sui-enclave-cli/sui/errors';
import { NETWORKS } from 'sui-enclave-cli/sui/network';
import { path, text } from 'sui-enclave-cli/values';
import { replaceFile } from 'sui-enclave-service/replace_file';
import * as v from 'valibot';
import { findProject } from '../project.ts';
import { compilePackage } from './compile.ts';

export const main = command({
  name: 'compile',
  purpose:
    "Compiles a package of move/ for a network, together with its unpublished dependencies, to a file that publish and\nupgrade read on another machine. Prints the SHA-256 of the file, which both commands require. Set FRAMEWORK=fetch to fetch\nSui's framework from GitHub, or SUI_FRAMEWORK_DIR to the folder of a copy.",
  example: 'weather --network testnet',
  arguments: { package: { schema: text } },
  options: {
    network: {
      value: '<name>',
      help: NETWORKS.join(', '),
      schema: v.picklist(NETWORKS, `must be one of ${NETWORKS.join(', ')}`),
      required: true,
      variable: 'SUI_ENCLAVE_NETWORK',
    },
    out: {
      value: '<file>',
      help: 'the file to write (default: out/<package>.<network>.bytecode.json)',
      schema: path,
    },
  },
  notes: 'exit codes: 0 compiled; 1 refused or failed; 2 invalid command line',
  async run({ args, options: { network, out } }, { env }) {
    const compiled = await compilePackage(args.package, env, network, { again: true });
    if (compiled.isStub) {
      throw new SuiCommandError(
        'STUB_FRAMEWORK',
        "no chain accepts bytecode that was compiled against the stub of Sui's framework: set FRAMEWORK=fetch, or SUI_FRAMEWORK_DIR to a copy of crates/sui-framework/packages of Sui",
      );
    }
    const file = out ?? join(findProject().root, 'out', `${args.package}.${network}.bytecode.json`);
    const content = formatBytecodeFile(compiled);
    const digest = digestBytecodeFile(content);
    mkdirSync(dirname(file), { recursive: true });
    replaceFile(file, content);
    const { framework, packages } = compiled;
    return {
      json: { file, digest, network, framework, packages, modules: compiled.modules.length },
      text: `Wrote ${file}: ${packages.join(' and ')}, compiled for ${network} with ${framework}.\nOn the machine with the key: sui-enclave publish ${args.package} --network ${network} --bytecode <that file> --digest ${digest}`,
    };
  },
});

if (import.meta.main) await runAsProcess(main);
