/** `sui-enclave host install NAME`: on the parent instance, installs an enclave as systemd units. */
import * as v from 'valibot';
import { command, readFileArgument, runAsProcess, UsageError } from '../command.ts';
import { CONFIG_OPTIONS, checkConfigOptions, requireNoOpenConfig } from '../provision/open_config.ts';
import { enclaveName, integer, ipv4, path } from '../values.ts';
import { ParentError } from './errors.ts';
import { checkSecrets } from './expose.ts';
import {
  enable,
  type Host,
  isInstalled,
  listInstalled,
  must,
  nameUnits,
  placeImage,
  readFiles,
  readSettings,
  requireName,
  thisHost,
  writeSecrets,
  writeSettings,
} from './host.ts';
import { setUp } from './host_folders.ts';
import { readConfig, readManifest } from './image.ts';
import { chooseMemory, SIZE_OPTIONS } from './nitro_cli.ts';

export interface InstallOptions {
  readonly eif: string;
  readonly cpus: number;
  readonly memory?: number | undefined;
  readonly address?: string | undefined;
  readonly port: number;
  readonly 'metrics-port'?: number | undefined;
  /** The content of the file with the secrets. */
  readonly secrets?: string | undefined;
  readonly 'secret-id'?: string | undefined;
}

export const main = command({
  name: 'host_install',
  purpose: `Installs an enclave as systemd units of this parent instance: copies the image, its registers and the relay, and
writes settings, units and users. systemd then starts the enclave at each boot, and again after it has ended.`,
  example: 'weather --eif out/nitro.eif --secrets secrets.json --start',
  arguments: { name: { schema: enclaveName } },
  options: {
    eif: {
      value: '<file>',
      help: 'the image; the relay is beside it',
      schema: path,
      default: 'out/nitro.eif',
    },
    ...SIZE_OPTIONS,
    address: {
      value: '<address>',
      help: 'the address of this instance to listen on: see expose_enclave',
      schema: ipv4,
    },
    port: {
      value: '<port>',
      help: 'the port of this instance to listen on',
      schema: integer(1024, 65_535),
      default: '3000',
    },
    'metrics-port': {
      value: '<port>',
      help: 'the port on 127.0.0.1 for the metrics: see expose_enclave',
      schema: integer(1024, 65_535),
    },
    secrets: {
      value: '<file>',
      help: "the application's secrets as a JSON object; the command makes a copy that only root can read",
      schema: path,
    },
    'secret-id': {
      value: '<id>',
      help: 'the id of the secret in AWS Secrets Manager with that JSON object',
      schema: v.pipe(v.string(), v.regex(/^[\w/+=.@:-]{1,2048}$/, 'must be the id of a secret')),
    },
    ...CONFIG_OPTIONS,
    start: { help: 'start the enclave too' },
  },
  notes: `Without --secrets and --secret-id, the enclave waits for its secrets, if its application has any: run provision on
another machine. With them, nothing is installed if a file of deployments/, or the network of --network, says that the
config of the application is open (CONFIG_OPEN).`,
  async run({ args: { name }, options: { start, secrets: file, ...options } }, { env, io }) {
    checkConfigOptions(options);
    if ((file ?? options['secret-id']) !== undefined) await requireNoOpenConfig(options, env);
    const host = thisHost(env);
    const secrets = file === undefined ? undefined : String(await readFileArgument(file));
    const { pcr0 } = install(host, name, { ...options, secrets });
    io.log(`${name} is installed: PCR0 ${pcr0}`);
    const [enclave] = nameUnits(name);
    if (start) must(host, 'systemctl', 'start', enclave);
    else io.log(`Next: systemctl start ${enclave}`);
    return { json: { name, pcr0, unit: enclave, started: start } };
  },
});

/** Installs an enclave. @throws UsageError; ParentError: WRONG_STATE, if another has the name or the port */
export function install(host: Host, name: string, options: InstallOptions): { pcr0: string } {
  requireName(name);
  if (isInstalled(host, name)) {
    throw new ParentError(
      'WRONG_STATE',
      `${name} is installed already: use host_upgrade to give it another image`,
    );
  }
  const files = readFiles(options.eif);
  const { image } = files;
  const memoryMib = chooseMemory(options.memory, image.bytes);
  const manifest = readManifest(image.eif);
  const { secrets, 'secret-id': id, cpus, port } = options;
  if (secrets !== undefined && id !== undefined) throw new UsageError('give either --secrets or --secret-id');
  if (secrets !== undefined) checkSecrets(secrets, manifest);
  const isProvisioned = (manifest.provisioners ?? []).length > 0;
  if (isProvisioned && (secrets ?? id) !== undefined) {
    throw new UsageError(
      'this image takes secrets from the provisioners of its app.yaml only: run provision on another machine',
    );
  }
  const config = readConfig(image.eif);
  const metricsPort = options['metrics-port'];
  if (metricsPort !== undefined && config.metricsPort === undefined) {
    throw new UsageError(
      '--metrics-port: this image has no metrics, since its server.env sets no METRICS_PORT',
    );
  }
  const address = options.address ?? (config.trustedProxies > 0 ? '127.0.0.1' : '0.0.0.0');
  for (const requestedPort of [port, ...(metricsPort === undefined ? [] : [metricsPort])])
    requirePort(host, requestedPort);
  placeImage(host, name, files);
  setUp(host, name);
  if (secrets !== undefined) writeSecrets(host, name, secrets);
  must(host, 'systemctl', 'daemon-reload');
  enable(host, name);
  // The settings come last: without them, the enclave is not installed, and the command can be repeated.
  writeSettings(host, name, {
    run: ['--cpus', String(cpus), '--memory', String(memoryMib)],
    expose: [
      '--address',
      address,
      '--port',
      String(port),
      ...(metricsPort === undefined ? [] : ['--metrics-port', String(metricsPort)]),
      ...(id === undefined ? [] : ['--secret-id', id]),
    ],
  });
  return { pcr0: image.registers.pcr0 };
}

/** @throws ParentError: WRONG_STATE, if another enclave has the port at any address */
function requirePort(host: Host, port: number): void {
  const holder = listInstalled(host).find((name) =>
    readSettings(host, name)
      .match(/-port \d+/g)
      ?.includes(`-port ${port}`),
  );
  if (holder === undefined) return;
  throw new ParentError('WRONG_STATE', `the enclave ${holder} has port ${port}: pass another port`);
}

if (import.meta.main) await runAsProcess(main);
