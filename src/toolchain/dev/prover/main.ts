/**
 * `sui-enclave dev_prover`, which `make prover` runs: the proving service with the development key, for
 * developers of wallets.
 */
import pretty from 'pino-pretty';
import { ConfigError, isEnclaveError } from 'sui-enclave/errors';
import { discoverProvider, PROVIDERS } from 'sui-enclave/zklogin';
import { command, type Environment, runAsProcess } from 'sui-enclave-cli/command';
import { PROFILES } from 'sui-enclave-prover/profile';
import { integer } from 'sui-enclave-service/env';
import { createLog } from 'sui-enclave-service/log';
import { endOnSignal } from 'sui-enclave-service/signals';
import { type DevelopmentIssuer, type LocalIssuer, startDevelopmentIssuer } from 'sui-enclave-testing/issuer';
import { type Artifacts, builtArtifacts, isSize } from '../../prover/artifacts.ts';
import { startProver } from './service.ts';

/** Minimum padding of SHA-256, in bytes. */
const SHA_PADDING = 9;

/** @throws ConfigError */
function readSettings(env: Environment) {
  const { SIZE: size = 'small', ISSUER: issuer, LOG_LEVEL = 'info' } = env;
  if (!isSize(size)) throw new ConfigError('SIZE must be small or full');
  const port = integer(env, 'PORT', { from: 0, to: 65_535, default: 8080 });
  if (issuer && !URL.canParse(issuer)) throw new ConfigError('ISSUER must be the URL of an OpenID provider');
  return { size, port, issuer, LOG_LEVEL };
}

export const main = command({
  name: 'dev_prover',
  purpose:
    'Starts the proving service on the development key that make prover built, until SIGTERM or Ctrl-C.',
  arguments: {},
  options: { 'check-only': { help: 'check the settings, and start nothing' } },
  notes: `environment:
  SIZE       the circuit: small or full (default: small)
  PORT       the front end's port (default: 8080)
  ISSUER     the URL of your own OpenID provider (default: one that gives anyone a token)
  LOG_LEVEL  the log level, as for the proving service (default: info)

exit codes: 0 ended by a signal; 1 it can't start, or the backend ended; 2 invalid command line`,
  async run({ options }, { env, io }) {
    const { size, port, issuer: issuerUrl, LOG_LEVEL } = readSettings(env);
    // `--check-only` runs before the circuit is built, which takes minutes, so that mistakes show earlier.
    if (options['check-only']) return { json: {} };
    const artifacts = builtArtifacts(size);
    const issuer = await (issuerUrl ? discover(issuerUrl) : startDevelopmentIssuer());
    const lines = pretty({
      colorize: process.stdout.isTTY ?? false,
      singleLine: true,
      translateTime: 'SYS:HH:MM:ss',
      sync: true,
    });
    const { url, backend, close } = await startProver({
      artifacts,
      issuer,
      port,
      env: { DEBUG: 'zkLogin:info', ...env },
      log: createLog(LOG_LEVEL, lines),
      onBackendLine: (line) => lines.write(`${line}\n`),
    });
    io.log(describe(url, artifacts, issuer));
    endOnSignal(close);
    await backend.died;
    return { json: {} };
  },
  // Messages name the command and the setting in the same way as make.
  report: (error, failure) =>
    isEnclaveError(error) && failure
      ? { ...failure, text: `make prover: ${error.message.replaceAll('PROVER_PORT', 'PORT')}` }
      : undefined,
});

/** @throws ZkLoginError if the issuer is neither https nor on this machine, or has no discovery document */
async function discover(issuer: string): Promise<LocalIssuer> {
  const { jwksUrl } = await discoverProvider(issuer, { name: 'ISSUER' });
  return { issuer, jwksUrl };
}

function describe(url: string, artifacts: Artifacts, issuer: LocalIssuer | DevelopmentIssuer): string {
  const { size } = artifacts;
  const issuers = Object.values(PROVIDERS).map(({ name }) => name);
  const limit =
    size === 'small'
      ? `tokens of up to ${PROFILES.small.paddedUnsignedJwt - SHA_PADDING} characters without their signature; make prover SIZE=full takes every token`
      : 'every token that Sui accepts';
  const example =
    'requestUrl' in issuer
      ? `curl -s ${issuer.requestUrl} | curl -s ${url} -H 'Content-Type: application/json' -d @-`
      : `curl -s ${url} -H 'Content-Type: application/json' -d @request.json`;
  return `
${url}  the proving service, ${size} size: ${limit}

DEVELOPMENT KEY: no validator accepts its proofs, and anyone can forge them.
Issuers: ${issuers.join(', ')}, and ${issuer.issuer}${'requestUrl' in issuer ? ', which gives anyone a token. ISSUER=<url> sets your own instead' : ''}.
Try, in another terminal:

  ${example}

Ctrl-C ends it.
`;
}

if (import.meta.main) await runAsProcess(main);
