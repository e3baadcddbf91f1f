/**
 * Checks the files of deploy/ for Compose and Kubernetes: the containers have no privileges, their volumes
 * are read-only, and the time limits are consistent.
 */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';

const DEPLOY = fileURLToPath(new URL('../../deploy/', import.meta.url));
const read = (name: string) => readFileSync(`${DEPLOY}${name}`, 'utf8');
const haproxy = read('haproxy.cfg');

type Settings = Readonly<Record<string, string | null>>;

interface ComposeService {
  readonly image: string;
  readonly environment: Settings;
  readonly read_only: boolean;
  readonly cap_drop: readonly string[];
  readonly security_opt: readonly string[];
  readonly restart: string;
  readonly mem_limit: string;
  readonly healthcheck: { readonly test: readonly string[] };
  readonly networks: readonly string[];
  readonly privileged?: boolean;
  readonly ports?: readonly string[];
  readonly volumes?: readonly { readonly target: string; readonly read_only: boolean }[];
}

interface Container {
  readonly image: string;
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly securityContext: object;
  readonly resources: { readonly requests: object; readonly limits: { readonly memory?: string } };
  readonly readinessProbe: object;
  readonly livenessProbe: object;
  readonly volumeMounts?: readonly { readonly mountPath: string; readonly readOnly?: boolean }[];
}

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own; the schemas are checked by make check-deploy.
  readonly spec: any;
}

const { services, networks } = parse(read('compose.yaml'), { merge: true }) as {
  services: Record<string, ComposeService>;
  networks: Record<string, { internal?: boolean }>;
};
const manifests = globSync('kubernetes/*.yaml', { cwd: DEPLOY }).flatMap((name) =>
  parseAllDocuments(read(name)).map((document) => document.toJS() as Manifest),
);
const PARTS = ['frontend', 'haproxy', 'backend'];

function findManifest(kind: string, name: string): Manifest {
  const manifest = manifests.find((entry) => entry.kind === kind && entry.metadata.name === name);
  if (!manifest) throw new Error(`there is no ${kind} ${name}`);
  return manifest;
}

const findContainer = (name: string) =>
  findManifest('Deployment', name).spec.template.spec.containers[0] as Container;
const readEnvironment = (name: string): Settings =>
  Object.fromEntries(findContainer(name).env.map((entry) => [entry.name, entry.value]));

/** Functions that read the settings of a part, by the platform that runs it. */
const platforms: [string, (part: string) => Settings][] = [
  ['Compose', (part) => services[part]?.environment ?? {}],
  ['Kubernetes', readEnvironment],
];

describe.each(platforms)('%s', (_platform, readSettings) => {
  const seconds = (part: string, name: string) => Number(readSettings(part)[name]);

  test('HAProxy gives up before the front end does, and a backend ends work for which no caller waits', () => {
    const haproxySeconds = seconds('haproxy', 'QUEUE_SECONDS') + seconds('haproxy', 'PROOF_SECONDS');
    expect(haproxySeconds).toBeLessThan(seconds('frontend', 'PROVER_TIMEOUT'));
    // A proof takes 1.65 s on two cores. A caller whom the front end has admitted must be able to wait long
    // enough in HAProxy's queue.
    expect(seconds('frontend', 'ANSWER_SECONDS')).toBeLessThanOrEqual(
      seconds('haproxy', 'QUEUE_SECONDS') + 1,
    );
    expect(seconds('backend', 'PROVER_TIMEOUT')).toBeLessThanOrEqual(seconds('haproxy', 'PROOF_SECONDS'));
  });

  test('sets only what haproxy.cfg reads', () => {
    for (const name of Object.keys(readSettings('haproxy'))) expect(haproxy).toContain(`\${${name}}`);
  });

  test('points the front end at HAProxy, and allows no development key', () => {
    expect(readSettings('frontend')['PROVER_URI']).toBe('http://haproxy:8080/input');
    for (const part of PARTS) expect(readSettings(part)['ALLOW_INSECURE_DEV_KEY'] ?? null).toBeNull();
  });
});

test('the defaults of haproxy.cfg fit those of the front end, and every setting is described', () => {
  const defaults = Object.fromEntries(
    [...haproxy.matchAll(/presetenv (\w+) (\S+)/g)].map(([, name = '', value]) => [name, value]),
  );
  expect(Number(defaults['QUEUE_SECONDS']) + Number(defaults['PROOF_SECONDS'])).toBeLessThan(15);
  const variables = new Set([...haproxy.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name));
  expect([...variables].sort()).toEqual([...Object.keys(defaults), 'METRICS_PORT', 'RESOLVER'].sort());
  for (const name of variables) {
    expect(haproxy).toMatch(new RegExp(`^#   ${name} `, 'm'));
    expect(read('README.md')).toContain(`| \`${name}\` |`);
  }
});

describe.each(PARTS)('the %s in Compose', (part) => {
  const service = services[part] as ComposeService;

  test('has no privileges, and can write only to tmpfs', () => {
    expect(service).toMatchObject({
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
    expect(service).not.toHaveProperty('privileged');
    for (const volume of service.volumes ?? []) expect(volume.read_only).toBe(true);
  });

  test('is restarted when it ends, and has a health check and a memory limit', () => {
    expect(service.restart).toBe('unless-stopped');
    expect(service.healthcheck.test[0]).toBe('CMD');
    expect(service.mem_limit).toMatch(/^\d+[mg]$/);
  });

  test('reaches only the other parts, unless it is the front end', () => {
    expect(networks['proving']?.internal).toBe(true);
    expect(service.networks).toEqual(part === 'frontend' ? ['outside', 'proving'] : ['proving']);
    expect(service.ports === undefined).toBe(part !== 'frontend');
  });
});

describe.each(PARTS)('the %s in Kubernetes', (part) => {
  const pod = findManifest('Deployment', part).spec.template.spec;
  const container = findContainer(part);

  test('has no privileges and no token of the cluster, and can write only to /tmp', () => {
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    for (const { mountPath, readOnly } of container.volumeMounts ?? []) {
      expect(readOnly ?? false).toBe(mountPath !== '/tmp');
    }
  });

  test('has probes, resources and a budget for disruptions', () => {
    expect(container).toMatchObject({ readinessProbe: {}, livenessProbe: {}, resources: { requests: {} } });
    expect(container.resources.limits.memory).toBeDefined();
    expect(findManifest('PodDisruptionBudget', part).spec.selector).toEqual(
      findManifest('Deployment', part).spec.selector,
    );
  });

  test('is selected by its service and its network policy', () => {
    const { matchLabels } = findManifest('Deployment', part).spec.selector;
    expect(pod).toBeDefined();
    expect(findManifest('Deployment', part).spec.template.metadata.labels).toEqual(matchLabels);
    expect(findManifest('Service', part).spec.selector).toEqual(matchLabels);
    expect(findManifest('NetworkPolicy', part).spec.podSelector).toEqual({ matchLabels });
  });

  test('runs the image of the Containerfile with its name, as a user other than root', () => {
    const image = `sui-enclave-prover-${part}:development`;
    expect(container.image).toBe(image);
    expect(services[part]?.image.replace(/\$\{TAG:-(\w+)\}/, '$1')).toBe(image);
    expect(read(`${part}.Containerfile`)).toMatch(/^USER 65532:65532$/m);
  });
});

describe('the backends in Kubernetes', () => {
  test('are found by DNS, scaled by CPU, and never outnumber the slots of HAProxy', () => {
    expect(findManifest('Service', 'backend').spec.clusterIP).toBe('None');
    const { spec } = findManifest('HorizontalPodAutoscaler', 'backend');
    expect(spec.metrics[0].resource.name).toBe('cpu');
    expect(findManifest('Deployment', 'backend').spec).not.toHaveProperty('replicas');
    const [, slots] = /presetenv BACKENDS (\d+)/.exec(haproxy) ?? [];
    expect(spec.maxReplicas).toBeLessThanOrEqual(Number(slots));
    const { name, namespace } = findManifest('Service', 'backend').metadata;
    expect(readEnvironment('haproxy')['BACKEND']).toBe(`${name}.${namespace}.svc.cluster.local`);
  });

  test('can not connect to any host', () => {
    const { policyTypes, egress } = findManifest('NetworkPolicy', 'backend').spec;
    expect([policyTypes, egress]).toEqual([['Ingress', 'Egress'], undefined]);
    expect(findManifest('NetworkPolicy', 'deny').spec.podSelector).toEqual({});
  });
});

test('no container gets a key, a circuit or a witness generator', () => {
  const recipes = PARTS.map((part) => read(`${part}.Containerfile`)).join('\n');
  const instructions = recipes.replace(/^#.*$/gm, '');
  expect(instructions).not.toMatch(/zkey|zkLogin|r1cs|circom|wasm/i);
});
