/** Implements the native functions of Sui's framework on the changes of a transaction. */
import { deriveDynamicFieldID } from '@mysten/sui/utils';
import { ed25519 } from '@noble/curves/ed25519.js';
import { blake2b } from '@noble/hashes/blake2.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import type { Emitted } from '../engine.ts';
import type { Changes, LedgerObject, Owner } from '../ledger.ts';
import type { ChainCode } from './code.ts';
import type { Native, NativeCall } from './program.ts';
import { format, type MoveType } from './types.ts';
import {
  type Address,
  address,
  Composite,
  composite,
  createVector,
  Int,
  idOf,
  int,
  Reference,
  reference,
  toBytes,
  type Value,
} from './values.ts';

/** Sui's limit on the number of events of a transaction. */
const MAX_EVENTS = 1024;
/** Sui's limit on the bytes of one event. */
const MAX_EVENT_BYTES = 256_000;
/** Sui's limit on the bytes of all events of a transaction. */
const MAX_EVENTS_BYTES = 65_536_000;
// Abort codes of Sui for events above these limits (`VMMemoryLimitExceededSubStatusCode`).
const TOO_MANY_EVENTS = 0;
const EVENT_TOO_LARGE = 1;
const EVENTS_TOO_LARGE = 7;

const FIELD_ALREADY_EXISTS = 0;
const FIELD_DOES_NOT_EXIST = 1;
const FIELD_TYPE_MISMATCH = 2;
const SHARED_NON_NEW_OBJECT = 0;

/** Object in a dynamic field, or the object that is the dynamic field. */
interface Child {
  readonly parent: Address;
  readonly type: MoveType;
  /** Value of the object, in a cell that references point to. */
  readonly cell: Value[];
}

/** Effects of a transaction's calls, other than the values that they return. */
export class Runtime {
  readonly changes: Changes;
  readonly sender: Address;
  readonly #code: ChainCode;
  readonly events: Emitted[] = [];
  #eventBytes = 0;
  /** Index of the running command. */
  command = 0;
  /** Attestation document that the running command may load; undefined if it may load none. */
  document: Value | undefined;
  readonly #children = new Map<Address, Child>();
  /** Owners of the objects that were taken by value, by id. */
  readonly #owners = new Map<Address, Owner>();

  constructor(changes: Changes, sender: Address, code: ChainCode) {
    this.changes = changes;
    this.sender = sender;
    this.#code = code;
  }

  /** Takes an object from the chain, which becomes a value of the transaction. */
  take({ id, owner }: LedgerObject): void {
    this.#owners.set(id, owner);
    this.changes.delete(id);
  }

  /** Writes a value to the chain as an object. */
  give(value: Value, type: MoveType, owner: Owner): void {
    const content = this.#code.codec.encode(value, type);
    this.changes.write({ id: idOf(value), type: this.#code.formatType(type), owner, content });
  }

  /** Writes the objects in dynamic fields, in the state in which the calls left them. */
  finish(): void {
    for (const [id, { parent, type, cell }] of this.#children) {
      const [value] = cell;
      if (value === undefined) continue;
      const content = this.#code.codec.encode(value, type);
      const before = this.changes.get(id);
      const owner = { kind: 'object', address: parent } as const;
      if (before === undefined || !Buffer.from(before.content).equals(content)) {
        this.changes.write({ id, type: this.#code.formatType(type), owner, content });
      }
    }
  }

  native(name: string): Native | undefined {
    return this.#natives[name] ?? NATIVES[name];
  }

  #child(parent: Address, id: Address): Child | undefined {
    const cached = this.#children.get(id);
    if (cached !== undefined) return cached.parent === parent ? cached : undefined;
    const object = this.changes.get(id);
    if (object?.owner.kind !== 'object' || object.owner.address !== parent) return undefined;
    const type = this.#code.parse(object.type);
    const child = { parent, type, cell: [this.#code.codec.decode(object.content, type)] };
    this.#children.set(id, child);
    return child;
  }

  /** Returns the child that a native function names. @throws MoveAbort if it is missing or of another type */
  #findChild(parent: Address, { args, types, abort, charge }: NativeCall): Child {
    const child = this.#child(parent, address(args[1]));
    if (child === undefined) throw abort(FIELD_DOES_NOT_EXIST);
    if (format(child.type) !== format(requireType(types))) throw abort(FIELD_TYPE_MISMATCH);
    charge(1);
    return child;
  }

  readonly #natives: Readonly<Record<string, Native>> = {
    'tx_context::native_sender': () => [this.sender],
    'tx_context::fresh_id': () => [this.changes.freshId()],
    'object::borrow_uid': ({ args: [object] }) => [
      new Reference(composite(reference(object).value).items, 0),
    ],
    'object::delete_impl': ({ args: [id] }) => {
      this.changes.destroy(address(id));
      return [];
    },
    'object::record_new_uid': ({ args: [id] }) => {
      this.changes.created.add(address(id));
      return [];
    },
    'transfer::transfer_impl': ({ args: [object, to], types }) => {
      this.give(requireArgument(object), requireType(types), { kind: 'address', address: address(to) });
      return [];
    },
    'transfer::freeze_object_impl': ({ args: [object], types }) => {
      this.give(requireArgument(object), requireType(types), { kind: 'immutable' });
      return [];
    },
    'transfer::share_object_impl': ({ args: [object], types, abort }) => {
      const value = requireArgument(object);
      const before = this.#owners.get(idOf(value));
      if (before !== undefined && before.kind !== 'shared') throw abort(SHARED_NON_NEW_OBJECT);
      this.give(value, requireType(types), before ?? this.changes.shared());
      return [];
    },
    'event::emit': ({ args: [event], types, charge, abort }) => {
      const content = this.#code.codec.encode(requireArgument(event), requireType(types));
      charge(content.length);
      this.#eventBytes += content.length;
      if (this.events.length >= MAX_EVENTS) throw abort(TOO_MANY_EVENTS);
      if (content.length > MAX_EVENT_BYTES) throw abort(EVENT_TOO_LARGE);
      if (this.#eventBytes > MAX_EVENTS_BYTES) throw abort(EVENTS_TOO_LARGE);
      this.events.push({ type: this.#code.formatType(requireType(types)), content, command: this.command });
      return [];
    },
    'bcs::to_bytes': ({ args: [value], types, charge }) => {
      const bytes = this.#code.codec.encode(reference(value).value, requireType(types));
      charge(bytes.length);
      return [createVector(bytes)];
    },
    'dynamic_field::hash_type_and_key': ({ args: [parent, key], types }) => {
      const encoded = this.#code.codec.encode(requireArgument(key), requireType(types));
      return [deriveDynamicFieldID(address(parent), this.#code.formatType(requireType(types)), encoded)];
    },
    'dynamic_field::add_child_object': ({ args: [parent, child], types, abort }) => {
      const value = requireArgument(child);
      const id = idOf(value);
      if (this.#child(address(parent), id) !== undefined) throw abort(FIELD_ALREADY_EXISTS);
      this.#children.set(id, { parent: address(parent), type: requireType(types), cell: [value] });
      // A later call may change the value; finish() then writes the object again.
      this.give(value, requireType(types), { kind: 'object', address: address(parent) });
      return [];
    },
    'dynamic_field::borrow_child_object': (call) => this.#borrowChild(call),
    'dynamic_field::borrow_child_object_mut': (call) => this.#borrowChild(call),
    'dynamic_field::has_child_object': ({ args: [parent, id] }) => [
      this.#child(address(parent), address(id)) !== undefined,
    ],
    'dynamic_field::has_child_object_with_ty': ({ args: [parent, id], types }) => {
      const child = this.#child(address(parent), address(id));
      return [child !== undefined && format(child.type) === format(requireType(types))];
    },
    'dynamic_field::remove_child_object': (call) => {
      const [parent, id] = call.args;
      const { cell } = this.#findChild(address(parent), call);
      this.#children.delete(address(id));
      const object = this.changes.get(address(id));
      if (object !== undefined) this.take(object);
      return cell;
    },
    'nitro_attestation::load_nitro_attestation_internal': () => {
      if (this.document === undefined) throw new TypeError('no document was verified before the call');
      return [this.document];
    },
  };

  #borrowChild(call: NativeCall): Value[] {
    return [new Reference(this.#findChild(idOf(reference(call.args[0]).value), call).cell, 0)];
  }
}

/** Native functions that need only their arguments. */
const NATIVES: Readonly<Record<string, Native>> = {
  'address::from_bytes': ({ args: [bytes], abort }) => {
    const addressBytes = toBytes(bytes as Value);
    if (addressBytes.length !== 32) throw abort(0);
    return [`0x${Buffer.from(addressBytes).toString('hex')}`];
  },
  'address::to_u256': ({ args: [value] }) => [new Int(256, BigInt(address(value)))],
  'address::from_u256': ({ args: [value] }) => [`0x${int(value).value.toString(16).padStart(64, '0')}`],
  'hash::blake2b256': ({ args: [data], charge }) => [
    createVector(blake2b(readBytes(data, charge), { dkLen: 32 })),
  ],
  'hash::keccak256': ({ args: [data], charge }) => [createVector(keccak_256(readBytes(data, charge)))],
  'ed25519::ed25519_verify': ({ args: [signature, key, message], charge }) => [
    isSigned(readBytes(signature, charge), readBytes(key, charge), readBytes(message, charge)),
  ],
  'string::internal_check_utf8': ({ args: [bytes], charge }) => [isUtf8(readBytes(bytes, charge))],
  'type_name::with_original_ids': ({ types }) => {
    const name = format(requireType(types)).replaceAll('0x', '');
    return [new Composite([new Composite([createVector(Buffer.from(name))])])];
  },
  'types::is_one_time_witness': ({ types }) => {
    const type = requireType(types);
    return [type.kind === 'struct' && type.name === type.module.toUpperCase() && type.args.length === 0];
  },
};

function requireType(types: readonly MoveType[]): MoveType {
  const [type] = types;
  if (type === undefined) throw new TypeError('no type argument');
  return type;
}

function requireArgument(value: Value | undefined): Value {
  if (value === undefined) throw new TypeError('no argument');
  return value;
}

/** Returns the bytes that a reference points to. */
function readBytes(value: Value | undefined, charge: NativeCall['charge']): Uint8Array {
  const bytes = toBytes(reference(value).value);
  charge(bytes.length);
  return bytes;
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function isSigned(signature: Uint8Array, key: Uint8Array, message: Uint8Array): boolean {
  try {
    return ed25519.verify(signature, message, key);
  } catch {
    // No valid key or signature has this length.
    return false;
  }
}
