/** A model of the functions of Sui's framework that the contracts' transactions call. */
import { bcs } from '@mysten/sui/bcs';
import { decodeAttestation, predictRegistration } from 'sui-enclave/attestation';
import { Document, type MoveFunction, nothing, type UpgradeReceipt, UpgradeTicket } from './call.ts';
import type { LedgerObject } from './ledger.ts';
import { UpgradeCap } from './structs.ts';

/** By module and name. */
export const FRAMEWORK: Readonly<Record<string, MoveFunction>> = {
  'nitro_attestation::load_nitro_attestation': async (frame) => {
    const bytes = bcs.byteVector().parse(frame.pure(0));
    const verdict = await predictRegistration(bytes, frame.context.nowMs, frame.context.root);
    if (verdict.abort !== null) throw frame.abort(verdict.abort);
    const { pcrs, publicKey, timestamp } = decodeAttestation(bytes);
    return [new Document(pcrs, publicKey ?? new Uint8Array(), timestamp)];
  },
  'package::make_immutable': (frame) => {
    frame.changes.delete((frame.call.args[0] as LedgerObject).id);
    return nothing;
  },
  'package::authorize_upgrade': (frame) => {
    const cap = frame.call.args[0] as LedgerObject;
    const { package: packageId, policy } = UpgradeCap.parse(cap.content);
    if (bcs.u8().parse(frame.pure(1)) < policy) throw frame.abort(1);
    return [new UpgradeTicket(cap.id, packageId, bcs.byteVector().parse(frame.pure(2)))];
  },
  'package::commit_upgrade': (frame) => {
    const cap = frame.call.args[0] as LedgerObject;
    const receipt = frame.call.args[1] as UpgradeReceipt;
    if (receipt.capId !== cap.id) throw frame.abort(4);
    const value = UpgradeCap.parse(cap.content);
    const version = (BigInt(value.version) + 1n).toString();
    const content = UpgradeCap.serialize({ ...value, package: receipt.packageId, version }).toBytes();
    frame.changes.write({ ...cap, content });
    return nothing;
  },
};
