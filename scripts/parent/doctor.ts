/** On the parent: what may keep an enclave from running. Exit code 1 where something is wrong. */
import { readArguments, runMain, Usage, wholeNumber } from '../command.ts';
import { examine } from './checks.ts';
import { NITRO_CODES } from './nitro_codes.ts';

const USAGE = `usage: npm run doctor -- [--eif out/nitro.eif] [--cpus 2] [--port 3000]
       npm run doctor -- CODE...

Tells what may keep an enclave from running on this machine, each with what to do; or explains codes of
nitro-cli, such as E36.`;

async function main(): Promise<void> {
  const options = {
    eif: { type: 'string', default: 'out/nitro.eif' },
    cpus: { type: 'string', default: '2' },
    port: { type: 'string', default: '3000' },
  } as const;
  const { values, positionals } = readArguments(USAGE, options, true);
  if (positionals.length > 0) {
    for (const code of positionals) {
      const text = NITRO_CODES[code.toUpperCase()];
      if (text === undefined) throw new Usage(`${code} is not a code that is known here`);
      console.log(`${code.toUpperCase()}: ${text}`);
    }
    return;
  }
  const cpus = wholeNumber('cpus', values.cpus, 1, 1024);
  const port = wholeNumber('port', values.port, 1, 65_535);
  const findings = await examine({ eif: values.eif, cpus, port, root: '/' });
  for (const { ok, text } of findings) console.log(`${ok ? 'ok ' : 'BAD'} ${text}`);
  if (findings.some(({ ok }) => !ok)) process.exitCode = 1;
}

await runMain(main);
