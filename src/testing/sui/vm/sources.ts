/** The sources that the Move VM compiles: those of `move/`, with test-only functions that rebuild objects of the ledger. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { MovePackageFetcher } from '@zktx.io/sui-move-builder/full';

const MOVE = new URL('../../../../move/', import.meta.url);
const FRAMEWORK = new URL('../../move_framework/', import.meta.url);

type Files = Record<string, string>;

/** Appended to modules, by their file: only a struct's own module can make one. */
const REBUILDERS: Readonly<Files> = {
  'object.move': `
#[test_only]
public fun model_uid(bytes: address): UID { new_uid_from_hash(bytes) }`,
  // The verifier accepts an object with the id of a function of this name.
  'test_scenario.move': `
public fun new_object(bytes: address): UID { object::model_uid(bytes) }`,
  'tx_context.move': `
#[test_only]
public fun model_context(sender: address, tx_hash: vector<u8>, ids_created: u64): TxContext {
    replace(sender, tx_hash, 0, 0, ids_created, 0, 0, 0, vector[]);
    TxContext { sender, tx_hash, epoch: 0, epoch_timestamp_ms: 0, ids_created }
}`,
  'package.move': `
#[test_only]
public fun model_publisher(id: address, package: vector<u8>, module_name: vector<u8>): Publisher {
    let id = sui::test_scenario::new_object(id);
    Publisher { id, package: std::ascii::string(package), module_name: std::ascii::string(module_name) }
}`,
  'nitro_attestation.move': `
#[test_only]
public fun model_document(
    timestamp: u64,
    indices: vector<u8>,
    values: vector<vector<u8>>,
    public_key: Option<vector<u8>>,
): NitroAttestationDocument {
    let mut pcrs = vector[];
    let mut i = 0;
    while (i < indices.length()) {
        pcrs.push_back(PCREntry { index: indices[i], value: values[i] });
        i = i + 1;
    };
    NitroAttestationDocument {
        module_id: vector[],
        timestamp,
        digest: vector[],
        pcrs,
        public_key,
        user_data: std::option::none(),
        nonce: std::option::none(),
    }
}`,
  'enclave.move': `
#[test_only]
public fun model_cap<T>(id: address): EnclaveCap<T> {
    EnclaveCap { id: sui::test_scenario::new_object(id) }
}
#[test_only]
public fun model_config<T>(
    id: address,
    name: String,
    pcr0: vector<u8>,
    pcr1: vector<u8>,
    pcr2: vector<u8>,
    source: Option<Source>,
    capability_id: ID,
    config_version: u64,
    overlap: Option<Overlap>,
    max_key_age_ms: Option<u64>,
    registrars: vector<ID>,
    is_retired: bool,
    package_version: u64,
): EnclaveConfig<T> {
    let pcrs = pcrs::new(pcr0, pcr1, pcr2);
    let id = sui::test_scenario::new_object(id);
    let registrars = vec_set::from_keys(registrars);
    EnclaveConfig {
        id,
        name,
        pcrs,
        source,
        capability_id,
        config_version,
        overlap,
        max_key_age_ms,
        registrars,
        is_retired,
        package_version,
    }
}
#[test_only]
public fun model_overlap(pcr0: vector<u8>, pcr1: vector<u8>, pcr2: vector<u8>, until_ms: u64): Overlap {
    Overlap { pcrs: pcrs::new(pcr0, pcr1, pcr2), until_ms }
}
#[test_only]
public fun model_enclave<T>(
    id: address,
    pk: vector<u8>,
    config_id: ID,
    config_version: u64,
    registered_at_ms: u64,
): Enclave<T> {
    Enclave { id: sui::test_scenario::new_object(id), pk, config_id, config_version, registered_at_ms }
}
#[test_only]
public fun model_registrar<T>(id: address, config_id: ID): RegistrarCap<T> {
    RegistrarCap { id: sui::test_scenario::new_object(id), config_id }
}
#[test_only]
public fun model_rotation<T>(config_id: ID): Rotation<T> {
    Rotation { config_id }
}
#[test_only]
public fun model_claim<T>(config: &mut EnclaveConfig<T>, pk: vector<u8>) {
    let key = EnclaveKey { config_version: config.config_version, pk };
    derived_object::claim(&mut config.id, key).delete();
}`,
};

/** The modules of `move/enclave` and `move/weather` as one package at an address, as they are published together. */
export function contractSources(address: string): Files {
  const addresses = `enclave = "${address}"\napp = "${address}"\n`;
  const manifest = `[package]\nname = "model"\nedition = "2024"\n\n[addresses]\n${addresses}`;
  const modules = ['enclave', 'weather'].map((name) => read(new URL(`${name}/sources/`, MOVE), 'sources/'));
  return Object.assign({ 'Move.toml': manifest }, ...modules);
}

/** Serves the stub of Sui's framework, whose natives are those of the VM. */
export const frameworkFetcher: MovePackageFetcher = {
  async fetch(_url: string, _revision: string, subdir = '') {
    return read(new URL(`${subdir.split('/').at(-1)}/`, FRAMEWORK), '');
  },
  async fetchFile() {
    return null;
  },
  getResolvedSha() {
    return undefined;
  },
};

function read(folder: URL, prefix: string): Files {
  const paths = readdirSync(fileURLToPath(folder), { recursive: true, encoding: 'utf8' });
  const files = paths.filter((path) => path.endsWith('.move') || path === 'Move.toml').sort();
  return Object.fromEntries(
    files.map((path) => {
      const source = readFileSync(new URL(path, folder), 'utf8');
      return [prefix + path, source + (REBUILDERS[path.split('/').at(-1) ?? ''] ?? '')];
    }),
  );
}
