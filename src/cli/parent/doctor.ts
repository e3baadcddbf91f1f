/**
 * `sui-enclave doctor`: on the parent instance, checks for everything that may keep an enclave from starting.
 */
import * as v from 'valibot';
import { command, EXIT, runAsProcess } from '../command.ts';
import { integer, path } from '../values.ts';
import { examine, type Finding } from './checks.ts';
import { NITRO_CODES } from './nitro_codes.ts';

/** An error code of nitro-cli that has an explanation. */
const nitroCode = v.pipe(
  v.string(),
  v.toUpperCase(),
  v.check((code) => NITRO_CODES[code] !== undefined, 'must be a code of nitro-cli, such as E36'),
);

export const main = command({
  name: 'doctor',
  purpose:
    'Before an install, checks whether an enclave can run on this machine, and says how to fix what prevents it. If an enclave\nruns already, it checks whether there is room for another one; host_status reports on running enclaves. With error codes\nof nitro-cli, such as E36, it explains the codes instead.',
  example: 'E36 E39',
  arguments: { code: { schema: nitroCode, optional: true, repeated: true } },
  options: {
    eif: { value: '<file>', help: 'the image', schema: path, default: 'out/nitro.eif' },
    cpus: {
      value: '<number>',
      help: 'the number of CPUs for the enclave',
      schema: integer(1, 1024),
      default: '2',
    },
    port: {
      value: '<port>',
      help: 'the port of this instance to forward to the enclave',
      schema: integer(1, 65_535),
      default: '3000',
    },
  },
  notes: 'exit codes: 0 no problem found; 1 a problem found; 2 invalid command line',
  async run({ args: { code: requestedCodes }, options }, { env }) {
    if (requestedCodes.length > 0) {
      const codes = requestedCodes.map((code) => ({ code, text: NITRO_CODES[code] ?? '' }));
      return { json: { codes }, text: codes.map(({ code, text }) => `${code}: ${text}`).join('\n') };
    }
    const findings = await examine({ ...options, root: '/', env });
    return {
      exit: findings.every(({ ok }) => ok) ? EXIT.done : EXIT.failed,
      json: { findings },
      text: findings.map(formatFinding).join('\n'),
    };
  },
});

function formatFinding({ ok, text, isAboutAnother }: Finding): string {
  return `${ok ? 'ok ' : 'BAD'} ${isAboutAnother ? 'for another enclave: ' : ''}${text}`;
}

if (import.meta.main) await runAsProcess(main);
