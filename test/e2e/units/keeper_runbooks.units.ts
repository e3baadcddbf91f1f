/**
 * Walks through the runbooks of the keeper and the provisioner, against a model of a Sui node, and enclaves
 * that start, age and end.
 */
import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ChainMachine, GAS_BUDGET, ROOT, type Service, url } from './chain_machine.ts';
import { findObstacle, until } from './machine.ts';
import { PROGRAM } from './parent_machine.ts';
import { installUnit, Walk } from './walk.ts';

const KEEPER: Service = {
  unit: 'src/cli/keeper/sui-enclave-keep.service',
  name: 'keeper',
  keystore: 'sui.keystore',
  metricsPort: 9112,
};
const UNIT = 'sui-enclave-keep.service';
const [ONE, TWO, VAULT] = [3101, 3102, 3103] as const;

let machine: ChainMachine;
let walk: Walk;

/** Writes the keeper's file. The keeper reads it at its start. */
function writeKeeperFile(ports: readonly number[], changes: object = {}): void {
  machine.writeServiceFile(KEEPER, ports, { ...machine.facts.keeper, ...changes });
}

const restartKeeper = () => machine.mustRun('systemctl', 'restart', UNIT);
/** Returns the number of registrations by the keeper, without those by an admin. */
const countRegistrations = () => machine.readOutput(UNIT).match(/^registered \S+$/gm)?.length ?? 0;

describe.skipIf(findObstacle() !== undefined)('the runbooks of the keeper and the provisioner', () => {
  beforeAll(async () => {
    machine = new ChainMachine();
    await machine.bootWorld();
    const { facts } = machine;
    walk = new Walk(
      machine,
      { keeper: 9112, provision: 9111 },
      { NETWORK: machine.formatOptions(), URL: url(TWO) },
      machine.adminVariables,
    );
    // Here, the name of an enclave is its port. The start of its unit starts the enclave at that port.
    const start = `${PROGRAM[0]} -e "fetch('http://127.0.0.1:4000/start?port=%i')"`;
    machine.write(
      'etc/systemd/system/sui-enclave@.service',
      `[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=${start}\n`,
    );
    machine.write('etc/sui-enclave/nitro.pcrs', facts.pcrs);
    machine.installService(KEEPER, facts.operatorKey);
    machine.tell(`start?port=${ONE}`);
  });
  afterAll(() => machine.close());

  test('EnclaveNotSeen: add the URL of an enclave that runs', async () => {
    writeKeeperFile([ONE]);
    restartKeeper();
    await until('the key is registered', () => countRegistrations() === 1);
    machine.tell(`start?port=${TWO}`);
    writeKeeperFile([TWO]);
    restartKeeper();
    await walk.awaitFiring('EnclaveNotSeen');
    writeKeeperFile([ONE, TWO]);
    walk.runBlock('EnclaveNotSeen', 0);
    await walk.awaitClear('EnclaveNotSeen');
    expect(countRegistrations()).toBe(2);
  });

  test('EnclaveUnregistered, KeeperGasLow: register the key as an admin, and raise gas_a_day', async () => {
    // The two registrations have used this whole budget.
    writeKeeperFile([ONE, TWO], { gas_a_day: 2 * GAS_BUDGET });
    restartKeeper();
    await walk.awaitFiring('KeeperGasLow');
    expect(walk.isFiring('EnclaveUnregistered')).toBe(false);
    machine.tell(`start?port=${TWO}&age_minutes=135`);
    await walk.awaitFiring('EnclaveUnregistered');
    const log = walk.runBlock('EnclaveUnregistered', 0);
    expect(log).toContain(`warning UNREGISTERED ${url(TWO)}: `);
    expect(log).toMatch(/alert GAS_A_DAY /);
    expect(walk.runBlock('EnclaveUnregistered', 1)).toMatch(/^Done: register the enclave at /m);
    await walk.awaitClear('EnclaveUnregistered');
    expect(walk.isFiring('KeeperGasLow')).toBe(true);
    expect(walk.runBlock('KeeperGasLow', 0)).toMatch(/alert GAS_A_DAY /);
    writeKeeperFile([ONE, TWO]);
    walk.runBlock('KeeperGasLow', 1);
    await walk.awaitClear('KeeperGasLow');
    expect(countRegistrations()).toBe(2);
  });

  test('EnclaveUnregistered: replace an enclave whose key was destroyed', async () => {
    machine.tell('destroy');
    await walk.awaitFiring('EnclaveUnregistered');
    expect(walk.runBlock('EnclaveUnregistered', 0)).toContain(`alert KEY_DESTROYED ${url(TWO)}: `);
    for (const port of [ONE, TWO]) walk.runBlock('Replace an enclave', 2, { NAME: String(port) });
    await walk.awaitClear('EnclaveUnregistered');
    await until('the new keys are registered', () => countRegistrations() === 4);
  });

  test('EnclaveStale: replace an enclave before its key is too old', async () => {
    machine.tell(`start?port=${ONE}&age_minutes=50`);
    await until('the key is registered', () => countRegistrations() === 5);
    machine.tell('max_key_age?hours=1');
    await walk.awaitFiring('EnclaveStale');
    expect(walk.runBlock('EnclaveStale', 0)).toContain(`warning KEY_AGING ${url(ONE)}: `);
    walk.runBlock('Replace an enclave', 2, { NAME: String(ONE) });
    await walk.awaitClear('EnclaveStale');
    await until('the new key is registered', () => countRegistrations() === 6);
  });

  test('KeeperAlert: correct the registers in keeper.yaml', async () => {
    const pcr0 = '7'.repeat(96);
    writeKeeperFile([ONE, TWO], { registers: { ...(machine.facts.keeper['registers'] as object), pcr0 } });
    restartKeeper();
    await walk.awaitFiring('KeeperAlert');
    expect(walk.runBlock('KeeperAlert', 0)).toMatch(/alert REGISTERS_DIFFER /);
    writeKeeperFile([ONE, TWO]);
    walk.runBlock('KeeperAlert', 1);
    await walk.awaitClear('KeeperAlert');
  });

  test('ProvisionerRefused: send nothing to another image, and correct secrets that were refused', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const hex = Buffer.from(publicKey.export({ format: 'jwk' }).x as string, 'base64url').toString('hex');
    machine.tell(`start?port=${VAULT}&provisioner=${hex}`);
    machine.write(
      'etc/sui-enclave/provisioner.pem',
      String(privateKey.export({ type: 'pkcs8', format: 'pem' })),
      0o600,
    );
    machine.write('etc/sui-enclave/provision.env', `ENCLAVE_URL=${url(VAULT)}\n`);
    machine.write('etc/sui-enclave/secrets.json', '{"KEY_OF_API":"hunter2"}', 0o600);
    machine.write('etc/sui-enclave/nitro.pcrs', machine.facts.pcrs.replace(/^./gm, '7'));
    installUnit(
      machine,
      'src/cli/provision/sui-enclave-provision.service',
      ` --root ${ROOT} --watch --interval 1 --metrics-port 9111`,
    );
    machine.mustRun('systemctl', 'start', 'sui-enclave-provision');
    await walk.awaitFiring('ProvisionerRefused');
    expect(walk.runBlock('ProvisionerRefused', 0)).toMatch(/POLICY_PCRS: /);
    machine.write('etc/sui-enclave/nitro.pcrs', machine.facts.pcrs);
    walk.runBlock('ProvisionerRefused', 1);
    await until('the secrets are refused', () =>
      /SECRETS_REFUSED: /.test(walk.runBlock('ProvisionerRefused', 0)),
    );
    expect(walk.isFiring('ProvisionerRefused')).toBe(true);
    machine.write('etc/sui-enclave/secrets.json', '{"API_KEY":"hunter2"}', 0o600);
    walk.runBlock('ProvisionerRefused', 1);
    await walk.awaitClear('ProvisionerRefused');
    expect(walk.runBlock('ProvisionerRefused', 0)).not.toMatch(/hunter2/);
  });
});
