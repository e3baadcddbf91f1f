/**
 * Fills the parameters of deploy/aws/stack.yaml. None of them is a secret: for each secret, there is only an
 * ARN.
 */
import { UsageError } from '../command.ts';
import type { HostFiles, StackImage } from './host_files.ts';
import { chooseMemory } from './nitro_cli.ts';

/** Settings of the command line, by the names of its options. */
export interface StackSettings {
  readonly region: string;
  readonly bucket: string;
  readonly prefix: string;
  readonly vpc: string;
  readonly subnets: readonly string[];
  readonly cidr?: string | undefined;
  readonly https?: string | undefined;
  readonly peers: boolean;
  readonly port: number;
  readonly address?: string | undefined;
  readonly 'instance-type': string;
  readonly 'per-subnet': number;
  readonly enclave: string;
  readonly cpus: number;
  readonly memory?: number | undefined;
  readonly secret?: string | undefined;
  readonly 'kms-key'?: string | undefined;
  readonly 'log-days': string;
  readonly 'helper-type': string;
  readonly 'keeper-secret'?: string | undefined;
  readonly 'keeper-address'?: string | undefined;
  readonly 'provisioner-key'?: string | undefined;
  readonly 'provisioner-secret'?: string | undefined;
  readonly enclaves?: readonly string[] | undefined;
}

/** Options that name a secret. */
const SECRETS = ['secret', 'keeper-secret', 'provisioner-key', 'provisioner-secret'] as const;

export type StackParameters = Readonly<Record<string, string>>;

/**
 * Returns the parameters by their names in the template: all but the system image, which is the newest
 * Amazon Linux. If a parameter were left out, CloudFormation would use its default.
 *
 * @throws UsageError, if the settings contradict each other or do not fit the image
 */
export function fillParameters(
  settings: StackSettings,
  { node, program, image: archive, keeper }: HostFiles,
  image: StackImage,
): StackParameters {
  checkAddress(settings, image);
  checkSecret(settings, image);
  const [subnet1 = '', subnet2 = '', subnet3 = ''] = settings.subnets;
  const { pcr0, pcr1, pcr2 } = image.registers;
  return {
    VpcId: settings.vpc,
    Subnet1: subnet1,
    Subnet2: subnet2,
    Subnet3: subnet3,
    ServiceCidr: settings.cidr ?? '',
    HttpsCidr: settings.https ?? '',
    Peers: settings.peers ? 'yes' : 'no',
    Port: String(settings.port),
    Address: settings.address ?? '',
    InstanceType: settings['instance-type'],
    InstancesPerSubnet: String(settings['per-subnet']),
    HelperInstanceType: settings['helper-type'],
    Bucket: settings.bucket,
    Prefix: settings.prefix,
    ProgramVersion: program.version,
    ProgramSha256: program.sha256,
    NodeVersion: node.version,
    NodeSha256: node.sha256,
    ImageVersion: archive.version,
    ImageSha256: archive.sha256,
    EnclaveName: settings.enclave,
    Pcr0: pcr0,
    Pcr1: pcr1,
    Pcr2: pcr2,
    Cpus: String(settings.cpus),
    MemoryMib: String(chooseMemory(settings.memory, image.bytes)),
    SecretArn: settings.secret ?? '',
    KmsKeyArn: settings['kms-key'] ?? '',
    LogRetentionDays: settings['log-days'],
    ...fillKeeper(settings, keeper),
    ...fillProvisioner(settings, image),
  };
}

/**
 * Checks `--address`.
 *
 * @throws UsageError, if callers could write any address into X-Forwarded-For, or if no peer could connect
 */
function checkAddress({ address, cidr, peers }: StackSettings, { config }: StackImage): void {
  if (peers && address?.startsWith('127.')) {
    throw new UsageError(
      `--peers: no other host reaches ${address}. Pass --address 0.0.0.0, or leave --peers out`,
    );
  }
  if (config.trustedProxies === 0) return;
  if (address === undefined) {
    throw new UsageError(
      'the image sets TRUSTED_PROXIES: pass --address 127.0.0.1 for a proxy on the instance, or --address 0.0.0.0 for a proxy on another host, which --peers, --cidr or alb.yaml admits',
    );
  }
  if (!address.startsWith('127.') && cidr?.endsWith('/0')) {
    throw new UsageError(
      'the image sets TRUSTED_PROXIES, so only the proxy may reach the port: --cidr must be its addresses',
    );
  }
}

/**
 * Checks the options that name secrets.
 *
 * @throws UsageError, if the enclave would wait for its secrets forever, if an ARN is in another region, or
 *   if the key encrypts no secret
 */
function checkSecret(settings: StackSettings, { manifest }: StackImage): void {
  const { secret, region } = settings;
  const isProvisioned = (manifest.provisioners ?? []).length > 0;
  if (secret !== undefined && isProvisioned) {
    throw new UsageError(
      '--secret: this image takes secrets from the provisioners of its app.yaml only, so pass none',
    );
  }
  if (secret !== undefined && manifest.secrets.length === 0) {
    throw new UsageError('--secret: the app.yaml of this image names no secrets, so pass none');
  }
  if (secret === undefined && manifest.secrets.length > 0 && !isProvisioned) {
    throw new UsageError(
      `--secret is required: the app.yaml of this image names the secrets ${manifest.secrets.join(', ')}`,
    );
  }
  if (settings['kms-key'] !== undefined && SECRETS.every((name) => settings[name] === undefined)) {
    throw new UsageError('--kms-key: no option names a secret that this key encrypts, so pass none');
  }
  for (const name of [...SECRETS, 'kms-key'] as const) {
    const arn = settings[name];
    if (arn !== undefined && arn.split(':')[3] !== region) {
      throw new UsageError(`--${name} is in the region ${arn.split(':')[3]}; the stack is in ${region}`);
    }
  }
}

function fillKeeper(settings: StackSettings, keeper: HostFiles['keeper']): StackParameters {
  const { 'keeper-secret': secret, 'keeper-address': address } = settings;
  if (secret === undefined && address === undefined) {
    if (keeper === undefined) {
      return { KeeperSecretArn: '', KeeperAddress: '', KeeperVersion: 'none', KeeperSha256: '' };
    }
    throw new UsageError(`${keeper.name}: pass --keeper-secret and --keeper-address, or remove this file`);
  }
  if (secret === undefined || address === undefined || keeper === undefined) {
    throw new UsageError(
      'a keeper needs --keeper-secret, --keeper-address and keeper-VERSION.yaml in the folder of --release',
    );
  }
  return {
    KeeperSecretArn: secret,
    KeeperAddress: address,
    KeeperVersion: keeper.version,
    KeeperSha256: keeper.sha256,
  };
}

function fillProvisioner(settings: StackSettings, { manifest }: StackImage): StackParameters {
  const { 'provisioner-key': key, 'provisioner-secret': secret, enclaves } = settings;
  if (key === undefined && secret === undefined && enclaves === undefined) {
    return { ProvisionerKeyArn: '', ProvisionerSecretArn: '', EnclaveUrls: '' };
  }
  if (key === undefined || secret === undefined || enclaves === undefined) {
    throw new UsageError('a provisioner needs --provisioner-key, --provisioner-secret and --enclaves');
  }
  if ((manifest.provisioners ?? []).length === 0) {
    throw new UsageError('the app.yaml of this image names no provisioners: leave the provisioner out');
  }
  return { ProvisionerKeyArn: key, ProvisionerSecretArn: secret, EnclaveUrls: enclaves.join(',') };
}
