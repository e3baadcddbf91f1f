#!/usr/bin/env node
/** The program `sui-enclave`: runs a command by its name, or lists the commands. */
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';
import { type Environment, EXIT, type Io, type Main, runAsProcess } from './command.ts';
import { COMMANDS, type Entry, needsToolchain, READERS } from './commands.ts';
import { IS_CLONE } from './places.ts';
import { suggestion } from './suggestion.ts';
import { type CommandModule, isToolchainInstalled, TOOLCHAIN, ToolchainError } from './toolchain.ts';

// A start spends most of its time on compiling. The compiled code is cached in a folder of this project. This
// adds no risk, since anyone who may write to the folder may also change the code.
const cache = IS_CLONE ? '../../build/compile-cache' : '../../.cache/sui-enclave';

/** Returns whether a command works in this installation. */
const isAvailable = ([, { inClone }]: [name: string, entry: Entry]) => IS_CLONE || !inClone;

/** Returns the list of commands, grouped by who runs them. */
function formatHelp(): string {
  const commands = Object.entries(COMMANDS).filter(isAvailable);
  const width = Math.max(...commands.map(([name]) => name.length)) + 2;
  const isMissing = isToolchainInstalled() ? () => false : needsToolchain;
  const groups = Object.entries(READERS).flatMap(([reader, title]) => {
    const lines = commands
      .filter(([, entry]) => entry.reader === reader)
      .map(([name, entry]) => `${isMissing(entry) ? '* ' : '  '}${name.padEnd(width)}${entry.summary}`);
    return lines.length === 0 ? [] : [[`${title}:`, ...lines].join('\n')];
  });
  return [
    `usage: sui-enclave <command> [arguments] [options]`,
    ...groups,
    ...(commands.some(([, entry]) => isMissing(entry))
      ? [`* needs the package ${TOOLCHAIN}, which is not installed beside this program.`]
      : []),
    `sui-enclave <command> --help explains a command. sui-enclave --version prints the version, its Node, and the Node and PCR1 of the images that it builds.`,
  ].join('\n\n');
}

/** Returns the name of a command, which may be written as `prover check-key`, and the arguments after it. */
function splitName(argv: readonly string[]): readonly string[] {
  const [first, second] = argv.map((word) => word.replaceAll('-', '_'));
  const pair = `${first}_${second}`;
  if (first !== undefined && Object.hasOwn(COMMANDS, first)) return [first, ...argv.slice(1)];
  return Object.hasOwn(COMMANDS, pair) ? [pair, ...argv.slice(2)] : argv;
}

function refuse(error: string, argv: readonly string[], io: Io, code = 'USAGE'): number {
  if (argv.includes('--json')) io.log(JSON.stringify({ status: 'failed', code, error }, null, 2));
  else io.error(`${code}: ${error}`);
  return EXIT.notTried;
}

export const main: Main = (argv, env, io) => run(argv, env, io, false);

/** @param ownsProcess whether a command may replace the output of this process */
async function run(argv: readonly string[], env: Environment, io: Io, ownsProcess: boolean): Promise<number> {
  const isHelp = ['help', '--help', '-h'].includes(argv[0] ?? '--help');
  const [name, ...commandArgv] = splitName(isHelp ? argv.slice(1) : argv);
  if (name === undefined) {
    io.log(formatHelp());
    return argv.length === 0 ? EXIT.notTried : EXIT.done;
  }
  if (name === '--version') {
    const { json, text } = await describeVersion();
    io.log(commandArgv.includes('--json') ? JSON.stringify(json, null, 2) : text);
    return EXIT.done;
  }
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (entry === undefined) {
    const names = Object.entries(COMMANDS)
      .filter(isAvailable)
      .map(([commandName]) => commandName);
    const advice = suggestion(name.replaceAll('-', '_'), names);
    return refuse(`there is no command ${name}${advice}. See sui-enclave --help`, argv, io);
  }
  if (!isAvailable([name, entry])) {
    return refuse(`${name} needs a clone of the repository, and this is an installed package`, argv, io);
  }
  const command = await loadCommand(entry);
  if (command instanceof ToolchainError) return refuse(command.message, argv, io, command.code);
  const { main: runCommand, takeOutput } = command;
  const output = ownsProcess && takeOutput ? takeOutput(io, argv.includes('--json')) : io;
  return await runCommand(isHelp ? ['--help'] : commandArgv, env, output);
}

/**
 * Loads a command. Resolves to an error if the command belongs to a toolchain that is missing or has another
 * version.
 */
async function loadCommand(entry: Entry): Promise<CommandModule | ToolchainError> {
  try {
    return await entry.load();
  } catch (error) {
    if (error instanceof ToolchainError) return error;
    throw error;
  }
}

/**
 * Describes this version: its Node, and for every image that it builds, the Node and the register of the boot
 * system.
 */
async function describeVersion() {
  const { readRelease } = await import('./release.ts');
  const { version, imageNode, pcr1 } = readRelease();
  const json = { version, node: process.versions.node, image_node: imageNode, pcr1 };
  const text = `${json.version}\nNode: ${json.node} here, ${json.image_node} in its images\nPCR1 of its images: ${json.pcr1}`;
  return { json, text };
}

/** Runs the command line of this process. */
export async function runProgram(): Promise<void> {
  enableCompileCache(fileURLToPath(new URL(cache, import.meta.url)));
  await runAsProcess((argv, env, io) => run(argv, env, io, true));
}

if (import.meta.main) await runProgram();
