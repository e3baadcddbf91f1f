/** On the parent: checks for everything that may keep an enclave from running. Exit code 1 if something is wrong. */
import { command, EXIT, integer, runAsProcess, UsageError } from '../command.ts';
import { NITRO_CODES } from './nitro_codes.ts';

export const main = command({
  usage: `usage: npm run doctor -- [--eif out/nitro.eif] [--cpus 2] [--port 3000]
       npm run doctor -- CODE...

Checks what may keep an enclave from running on this machine, and prints what to do; or explains codes of nitro-cli,
such as E36.`,
  options: {
    eif: { type: 'string', default: 'out/nitro.eif' },
    cpus: { type: 'string', default: '2' },
    port: { type: 'string', default: '3000' },
  },
  repeats: true,
  async run({ values, positionals }, { env }) {
    if (positionals.length > 0) {
      const codes = positionals.map((code) => ({ code: code.toUpperCase(), text: explanation(code) }));
      return { json: { codes }, text: codes.map(({ code, text }) => `${code}: ${text}`).join('\n') };
    }
    const cpus = integer('cpus', values.cpus, 1, 1024);
    const port = integer('port', values.port, 1, 65_535);
    const { examine } = await import('./checks.ts');
    const findings = await examine({ eif: values.eif, cpus, port, root: '/', env });
    return {
      exit: findings.every(({ ok }) => ok) ? EXIT.done : EXIT.failed,
      json: { findings },
      text: findings.map(({ ok, text }) => `${ok ? 'ok ' : 'BAD'} ${text}`).join('\n'),
    };
  },
});

function explanation(code: string): string {
  const text = NITRO_CODES[code.toUpperCase()];
  if (text === undefined) throw new UsageError(`${code} is not a known code of nitro-cli`);
  return text;
}

if (import.meta.main) await runAsProcess(main);
