#!/usr/bin/env node
/** The program `sui-enclave`: runs a command by its name, or lists the commands. */
import { EXIT, type Main, runAsProcess } from './command.ts';
import { COMMANDS, READERS } from './commands.ts';

/** The list of commands, grouped by who runs them. */
function help(): string {
  const width = Math.max(...Object.keys(COMMANDS).map((name) => name.length)) + 2;
  const groups = Object.entries(READERS).map(([reader, title]) => {
    const own = Object.entries(COMMANDS).filter(([, command]) => command.reader === reader);
    return [`${title}:`, ...own.map(([name, { summary }]) => `  ${name.padEnd(width)}${summary}`)].join('\n');
  });
  return [
    'usage: sui-enclave <command> [arguments] [options]',
    ...groups,
    'sui-enclave <command> --help explains a command.',
  ].join('\n\n');
}

export const main: Main = async (argv, env, io) => {
  const [first = '--help', ...rest] = argv;
  const isHelp = ['help', '--help', '-h'].includes(first);
  const name = isHelp ? rest[0] : first;
  if (name === undefined) {
    io.log(help());
    return argv.length === 0 ? EXIT.notTried : EXIT.done;
  }
  const entry = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (entry === undefined) {
    const error = `there is no command ${name}. See sui-enclave --help`;
    if (argv.includes('--json')) io.log(JSON.stringify({ status: 'failed', code: 'USAGE', error }, null, 2));
    else io.error(`USAGE: ${error}`);
    return EXIT.notTried;
  }
  const command = await entry.load();
  return await command.main(isHelp ? ['--help'] : rest, env, io);
};

if (import.meta.main) await runAsProcess(main);
