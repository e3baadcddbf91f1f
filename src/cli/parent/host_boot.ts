/**
 * `sui-enclave host_boot FILE`: sets up a host of deploy/aws/stack.yaml at its first boot. Before that, the
 * host's user data has checked the release, which contains this program.
 */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { formatPcrs } from 'sui-enclave/attestation/image';
import { replaceFile } from 'sui-enclave-service/replace_file';
import * as v from 'valibot';
import { command, readFileArgument, runAsProcess, UsageError } from '../command.ts';
import { awsRegion, enclaveName, enclaveUrl, integer, ipv4, path, secretArn } from '../values.ts';
import { ParentError } from './errors.ts';
import { FOLDERS, formatProgram, type Host, isInstalled, must, nameUnits, thisHost } from './host.ts';
import { install } from './host_install.ts';
import { run } from './programs.ts';

const AGENT = 'opt/aws/amazon-cloudwatch-agent';

const matching = (pattern: RegExp) => v.pipe(v.string(), v.regex(pattern));
/** Returns the schema of a parameter that may be empty, and is undefined then. */
const optional = <S extends v.GenericSchema<string, unknown>>(schema: S) =>
  v.union([
    v.pipe(
      v.literal(''),
      v.transform(() => undefined),
    ),
    schema,
  ]);
const register = matching(/^[0-9a-f]{96}$/);
const registers = { pcr0: register, pcr1: register, pcr2: register };

const EnclaveHost = v.strictObject({
  role: v.literal('enclave'),
  region: awsRegion,
  name: enclaveName,
  ...registers,
  cpus: integer(2, 126),
  memoryMib: integer(512, 1_000_000),
  port: integer(1024, 65_535),
  address: optional(ipv4),
  secretArn: optional(secretArn),
  logGroup: matching(/^\/sui-enclave\/[\w-]+$/),
});
const KeeperHost = v.strictObject({
  role: v.literal('keeper'),
  region: awsRegion,
  address: matching(/^0x[0-9a-f]{64}$/),
  secretArn,
});
const ProvisionerHost = v.strictObject({
  role: v.literal('provisioner'),
  region: awsRegion,
  urls: v.pipe(
    v.string(),
    v.transform((urls) => urls.split(',')),
    v.array(enclaveUrl),
  ),
  ...registers,
  keyArn: secretArn,
  secretArn,
});
const BootFile = v.variant('role', [EnclaveHost, KeeperHost, ProvisionerHost]);
type BootFile = v.InferOutput<typeof BootFile>;

export const main = command({
  name: 'host_boot',
  purpose: `Sets up a host of the CloudFormation stack at its first boot: an enclave, a keeper or a provisioner. The user data of the
host writes the file with the parameters, and runs this command.`,
  example: 'boot.json',
  arguments: { file: { schema: path } },
  options: {},
  async run({ args: { file } }, { env, io }) {
    const parameters = parseBootFile(String(await readFileArgument(file)));
    boot(thisHost(env), parameters, dirname(file));
    io.log(`this host is set up: ${parameters.role}`);
    return { json: { role: parameters.role } };
  },
});

/** Parses the parameters of a host. @throws UsageError, also if a secret is in another region */
export function parseBootFile(text: string): BootFile {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    throw new UsageError('the parameters are not JSON');
  }
  const parsed = v.safeParse(BootFile, data);
  if (!parsed.success) {
    throw new UsageError(`the parameter ${v.getDotPath(parsed.issues[0]) ?? ''} is invalid`);
  }
  const { output } = parsed;
  for (const arn of [output.secretArn, output.role === 'provisioner' ? output.keyArn : undefined]) {
    if (arn !== undefined && arn.split(':')[3] !== output.region) {
      throw new UsageError(`the secret ${arn} is not in this host's region, ${output.region}`);
    }
  }
  return output;
}

/**
 * Sets the host up. May be run again after a failure.
 *
 * @param folder folder with the files of the release that belong to the role
 * @throws UsageError; ParentError
 */
export function boot(host: Host, parameters: BootFile, folder: string): void {
  if (parameters.role === 'enclave') bootEnclave(host, parameters, folder);
  else if (parameters.role === 'keeper') bootKeeper(host, parameters, folder);
  else bootProvisioner(host, parameters);
}

function bootEnclave(host: Host, parameters: v.InferOutput<typeof EnclaveHost>, folder: string): void {
  const { name, cpus, memoryMib, port, address, secretArn, region } = parameters;
  const packages = ['aws-nitro-enclaves-cli', 'aws-nitro-enclaves-cli-devel', 'amazon-cloudwatch-agent'];
  must(host, 'dnf', 'install', '-y', ...packages);
  reserve(host, cpus, memoryMib);
  must(host, 'systemctl', 'enable', '--now', 'nitro-enclaves-allocator.service');
  shipEvents(host, parameters.logGroup);
  if (!isInstalled(host, name)) {
    const eif = join(folder, 'image/nitro.eif');
    // The registers are those of the stack, whatever the archive says.
    writeFileSync(join(folder, 'image/nitro.pcrs'), formatPcrs(parameters));
    install(host, name, { eif, cpus, memory: memoryMib, port, address, 'secret-id': secretArn });
  }
  const [enclave, expose] = nameUnits(name);
  write(
    host,
    join(FOLDERS.units, `${expose}.d/region.conf`),
    `[Service]\nEnvironment=AWS_REGION=${region}\n`,
  );
  must(host, 'systemctl', 'daemon-reload');
  must(host, 'systemctl', 'start', enclave, expose);
}

/** Reserves CPUs and memory for the enclave, which nitro-cli's allocator takes from the host. */
function reserve({ root }: Host, cpus: number, memoryMib: number): void {
  const file = join(root, 'etc/nitro_enclaves/allocator.yaml');
  const text = readFileSync(file, 'utf8')
    .replace(/^memory_mib:.*$/m, `memory_mib: ${memoryMib}`)
    .replace(/^cpu_count:.*$/m, `cpu_count: ${cpus}`);
  replaceFile(file, text, 0o644);
}

/** Makes the agent ship closed events to the stack's log group: see src/cli/logs/README.md. */
function shipEvents(host: Host, logGroup: string): void {
  const config = JSON.parse(readFileSync(new URL('../logs/cloudwatch-agent.json', import.meta.url), 'utf8'));
  // The stack makes the group and sets its retention. This host's role may do neither.
  const [file] = config.logs.logs_collected.files.collect_list;
  file.log_group_name = logGroup;
  delete file.retention_in_days;
  delete file.log_group_class;
  const path = `${AGENT}/etc/sui-enclave.json`;
  write(host, path, JSON.stringify(config, null, 2));
  if (run(host.env, 'id', ['sui-enclave-events']).status !== 0) {
    must(host, 'useradd', '--system', '--no-create-home', 'sui-enclave-events');
  }
  startUnit(host, 'logs', 'sui-enclave-events');
  const control = join(host.root, AGENT, 'bin/amazon-cloudwatch-agent-ctl');
  must(host, control, '-a', 'fetch-config', '-m', 'ec2', '-s', '-c', `file:/${path}`);
}

function bootKeeper(
  host: Host,
  { region, address, secretArn }: v.InferOutput<typeof KeeperHost>,
  folder: string,
): void {
  writeSecret(host, region, secretArn, 'sui.keystore');
  cpSync(join(folder, 'keeper.yaml'), join(host.root, FOLDERS.settings, 'keeper.yaml'));
  write(host, join(FOLDERS.settings, 'keeper.env'), `KEEPER_ADDRESS=${address}\n`);
  startUnit(host, 'keeper', 'sui-enclave-keep');
}

/** Starts a watcher for each enclave. */
function bootProvisioner(host: Host, parameters: v.InferOutput<typeof ProvisionerHost>): void {
  const { region, keyArn, secretArn, urls } = parameters;
  writeSecret(host, region, secretArn, 'secrets.json');
  writeSecret(host, region, keyArn, 'provisioner.pem');
  write(host, join(FOLDERS.settings, 'nitro.pcrs'), formatPcrs(parameters));
  for (const [index, url] of urls.entries()) {
    const settings = `provision-${index + 1}.env`;
    write(host, join(FOLDERS.settings, settings), `ENCLAVE_URL=${url}\n`);
    startUnit(host, 'provision', 'sui-enclave-provision', `sui-enclave-provision-${index + 1}`, settings);
  }
}

/**
 * Copies a secret to a file for root alone, from which systemd gives the service a copy in memory.
 *
 * @throws ParentError: PROGRAM_FAILED. The message does not contain the secret
 */
function writeSecret(host: Host, region: string, arn: string, file: string): void {
  const args = ['--region', region, 'secretsmanager', 'get-secret-value', '--secret-id', arn];
  const { status, stdout } = run(host.env, 'aws', [...args, '--query', 'SecretString', '--output', 'text']);
  if (status !== 0 || stdout.trim() === '') {
    throw new ParentError(
      'PROGRAM_FAILED',
      `aws could not read the secret ${arn}: does this instance's role allow it?`,
    );
  }
  write(host, join(FOLDERS.settings, file), stdout, 0o600);
}

/** Writes a unit that starts this program, enables it and starts it. */
function startUnit(host: Host, folder: string, unit: string, name = unit, settings = 'provision.env'): void {
  const text = readFileSync(new URL(`../${folder}/${unit}.service`, import.meta.url), 'utf8')
    .replace(
      /^ExecStart=\S+ src\/cli\/\w+\/(keep|provision)\.ts/m,
      (_, command) => `ExecStart=${formatProgram(host.program)} ${command}`,
    )
    .replace(/^ExecStart=\S+ \S+\/main\.ts/m, () => `ExecStart=${formatProgram(host.program)}`)
    .replace('/etc/sui-enclave/provision.env', `/etc/sui-enclave/${settings}`);
  write(host, join(FOLDERS.units, `${name}.service`), text);
  must(host, 'systemctl', 'daemon-reload');
  must(host, 'systemctl', 'enable', '--now', `${name}.service`);
}

function write({ root }: Host, path: string, text: string, mode = 0o644): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
  replaceFile(file, text, mode);
}

if (import.meta.main) await runAsProcess(main);
