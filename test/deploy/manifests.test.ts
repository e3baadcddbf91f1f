/**
 * Checks the files of deploy/ for Compose and Kubernetes: no privileges, read-only keys, and consistent
 * time-outs.
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

function find(kind: string, name: string): Manifest {
  const manifest = manifests.find((entry) => entry.kind === kind && entry.metadata.name === name);
  if (!manifest) throw new Error(`there is no ${kind} ${name}`);
  return manifest;
}

const findContainer = (name: string) =>
  find('Deployment', name).spec.template.spec.containers[0] as Container;
const readEnvironment = (name: string): Settings =>
  Object.fromEntries(findContainer(name).env.map((entry) => [entry.name, entry.value]));

/** Functions that read the settings of each part, by the name of the way to run it. */
const ways: [string, (part: string) => Settings][] = [
  ['Compose', (part) => services[part]?.environment ?? {}],
  ['Kubernetes', readEnvironment],
];

describe.each(ways)('%s', (_way, readSettings) => {
  const seconds = (part: string, name: string) => Number(readSettings(part)[name]);

  test('HAProxy gives up before the front end does, and a backend ends work that nobody waits for', () => {
    const patience = seconds('haproxy', 'QUEUE_SECONDS') + seconds('haproxy', 'PROOF_SECONDS');
    expect(patience).toBeLessThan(seconds('frontend', 'PROVER_TIMEOUT'));
    // A proof takes 1.65 s on two cores. A caller who has a place at the front end must wait long enough at
    // HAProxy.
    expect(seconds('frontend', 'ANSWER_SECONDS')).toBeLessThanOrEqual(
      seconds('haproxy', 'QUEUE_SECONDS') + 1,
    );
    expect(seconds('backend', 'PROVER_TIMEOUT')).toBeLessThanOrEqual(seconds('haproxy', 'PROOF_SECONDS'));
  });

  test('sets only what haproxy.cfg reads', () => {
    for (const name of Object.keys(readSettings('haproxy'))) expect(haproxy).toContain(`\${${name}}`);
  });

  test('sends the front end to HAProxy, and demands no development key', () => {
    expect(readSettings('frontend')['PROVER_URI']).toBe('http://haproxy:8080/input');
    for (const part of PARTS) expect(readSettings(part)['ALLOW_INSECURE_DEV_KEY'] ?? null).toBeNull();
  });
});

test('the defaults of haproxy.cfg fit those of the front end, and every setting is described', () => {
  const defaults = Object.fromEntries(
    [...haproxy.matchAll(/presetenv (\w+) (\S+)/g)].map(([, name = '', value]) => [name, value]),
  );
  expect(Number(defaults['QUEUE_SECONDS']) + Number(defaults['PROOF_SECONDS'])).toBeLessThan(15);
  const read_ = new Set([...haproxy.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name));
  expect([...read_].sort()).toEqual([...Object.keys(defaults), 'METRICS_PORT', 'RESOLVER'].sort());
  for (const name of read_) {
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

  test('is restarted, has a health check and a limit of memory', () => {
    expect(service.restart).toBe('unless-stopped');
    expect(service.healthcheck.test[0]).toBe('CMD');
    expect(service.mem_limit).toMatch(/^\d+[mg]$/);
  });

  test('reaches the other parts alone, unless it is the front end', () => {
    expect(networks['proving']?.internal).toBe(true);
    expect(service.networks).toEqual(part === 'frontend' ? ['outside', 'proving'] : ['proving']);
    expect(service.ports === undefined).toBe(part !== 'frontend');
  });
});

describe.each(PARTS)('the %s in Kubernetes', (part) => {
  const pod = find('Deployment', part).spec.template.spec;
  const container = findContainer(part);

  test('has no privileges, no token of the cluster, and can write only to memory', () => {
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
    expect(find('PodDisruptionBudget', part).spec.selector).toEqual(find('Deployment', part).spec.selector);
  });

  test('is found by its service and its policy', () => {
    const { matchLabels } = find('Deployment', part).spec.selector;
    expect(pod).toBeDefined();
    expect(find('Deployment', part).spec.template.metadata.labels).toEqual(matchLabels);
    expect(find('Service', part).spec.selector).toEqual(matchLabels);
    expect(find('NetworkPolicy', part).spec.podSelector).toEqual({ matchLabels });
  });

  test('runs the image that the Containerfile of its name makes, as another user than root', () => {
    const image = `sui-enclave-prover-${part}:development`;
    expect(container.image).toBe(image);
    expect(services[part]?.image.replace(/\$\{TAG:-(\w+)\}/, '$1')).toBe(image);
    expect(read(`${part}.Containerfile`)).toMatch(/^USER 65532:65532$/m);
  });
});

describe('the backends in Kubernetes', () => {
  test('are found by DNS, scaled by CPU, and at most as many as HAProxy has room for', () => {
    expect(find('Service', 'backend').spec.clusterIP).toBe('None');
    const { spec } = find('HorizontalPodAutoscaler', 'backend');
    expect(spec.metrics[0].resource.name).toBe('cpu');
    expect(find('Deployment', 'backend').spec).not.toHaveProperty('replicas');
    const [, slots] = /presetenv BACKENDS (\d+)/.exec(haproxy) ?? [];
    expect(spec.maxReplicas).toBeLessThanOrEqual(Number(slots));
    const { name, namespace } = find('Service', 'backend').metadata;
    expect(readEnvironment('haproxy')['BACKEND']).toBe(`${name}.${namespace}.svc.cluster.local`);
  });

  test('can call no host', () => {
    const { policyTypes, egress } = find('NetworkPolicy', 'backend').spec;
    expect([policyTypes, egress]).toEqual([['Ingress', 'Egress'], undefined]);
    expect(find('NetworkPolicy', 'deny').spec.podSelector).toEqual({});
  });
});

test('no container gets a key, a circuit or a witness generator', () => {
  const recipes = PARTS.map((part) => read(`${part}.Containerfile`)).join('\n');
  const instructions = recipes.replace(/^#.*$/gm, '');
  expect(instructions).not.toMatch(/zkey|zkLogin|r1cs|circom|wasm/i);
});
