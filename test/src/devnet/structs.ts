/** BCS types of the objects of `move/enclave` and `sui::package`. */
import { bcs } from '@mysten/sui/bcs';
import { normalizeStructTag } from '@mysten/sui/utils';

const PCRS = bcs.tuple([bcs.byteVector(), bcs.byteVector(), bcs.byteVector()]);

const Source = bcs.struct('Source', {
  url: bcs.string(),
  commit: bcs.byteVector(),
  folder: bcs.string(),
  framework_version: bcs.string(),
  measurements_sha256: bcs.byteVector(),
});
const Overlap = bcs.struct('Overlap', { pcrs: PCRS, until_ms: bcs.u64() });
export const Config = bcs.struct('EnclaveConfig', {
  id: bcs.Address,
  name: bcs.string(),
  pcrs: PCRS,
  source: bcs.option(Source),
  capability_id: bcs.Address,
  config_version: bcs.u64(),
  overlap: bcs.option(Overlap),
  max_key_age_ms: bcs.option(bcs.u64()),
  registrars: bcs.vector(bcs.Address),
  is_retired: bcs.bool(),
  package_version: bcs.u64(),
  is_open: bcs.bool(),
});
export const Enclave = bcs.struct('Enclave', {
  id: bcs.Address,
  pk: bcs.byteVector(),
  config_id: bcs.Address,
  config_version: bcs.u64(),
  registered_at_ms: bcs.u64(),
});
export const Registrar = bcs.struct('RegistrarCap', { id: bcs.Address, config_id: bcs.Address });
export const UpgradeCap = bcs.struct('UpgradeCap', {
  id: bcs.Address,
  package: bcs.Address,
  version: bcs.u64(),
  policy: bcs.u8(),
});
export const PUBLISHER = normalizeStructTag('0x2::package::Publisher');
export const Publisher = bcs.struct('Publisher', {
  id: bcs.Address,
  package: bcs.string(),
  module_name: bcs.string(),
});
