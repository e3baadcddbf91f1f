/** Generates the signed types for Python: a module that needs only the package `cryptography`. */
import { type SchemaField, type SchemaStruct, unwrapType } from 'sui-enclave/wire/schema_type';
import { itemOf, requireDistinct, type SignedStructs } from './signed_structs.ts';

/** Codecs of the module and the types of their values, by the name of the type in Move. */
const PLAIN: ReadonlyMap<string, readonly [codec: string, value: string]> = new Map([
  ['bool', ['_Bool()', 'bool']],
  ['u8', ['_Integer(1)', 'int']],
  ['u16', ['_Integer(2)', 'int']],
  ['u32', ['_Integer(4)', 'int']],
  ['u64', ['_Integer(8)', 'int']],
  ['u128', ['_Integer(16)', 'int']],
  ['u256', ['_Integer(32)', 'int']],
  ['address', ['_Address()', 'str']],
  ['String', ['_Text()', 'str']],
]);
const BYTES = 'vector<u8>';

/** Keywords of Python, which can't be names. */
const KEYWORDS = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
);

/**
 * Returns the content of `signed.py`, without its header.
 *
 * @throws GenError: GEN_CONFLICT, if two fields would have the same name
 */
export function pythonModule({ signed, all }: SignedStructs): string {
  const intents = signed.map(
    ({ name, intent }) => `    ${pythonName(name)}: (${intent}, ${codecName(name)}),\n`,
  );
  return `${RUNTIME}\n\n${all.map(structText).join('\n\n')}\n\n_SIGNED: dict[type, tuple[int, _Struct]] = {\n${intents.join('')}}\n`;
}

/** Adds an underscore to a name that is a keyword, as PEP 8 recommends. */
function pythonName(name: string): string {
  return KEYWORDS.has(name) ? `${name}_` : name;
}

function codecName(struct: string): string {
  return `_codec_of_${struct}`;
}

function structText({ name, fields }: SchemaStruct): string {
  const names = fields.map((field) => pythonName(field.name));
  requireDistinct('field of Python', names);
  const members = fields.map((field, index) => `    ${names[index]}: ${valueType(field)}\n`);
  const codecs = fields.map(
    (field, index) => `        ("${field.name}", "${names[index]}", ${codecText(field)}),\n`,
  );
  return `@_dataclass(frozen=True)
class ${pythonName(name)}:
${members.join('')}

${codecName(name)} = _Struct(
    ${pythonName(name)},
    [
${codecs.join('')}    ],
)
`;
}

function codecText(field: SchemaField): string {
  const { wrappers, leaf } = unwrapType(field.type);
  if (field.type === BYTES) return '_Bytes()';
  if (wrappers[0] === 'vector') return `_Vector(${codecText(itemOf(field))})`;
  if (wrappers[0] === 'Option') return `_Option(${codecText(itemOf(field))})`;
  return PLAIN.get(leaf)?.[0] ?? codecName(leaf);
}

function valueType(field: SchemaField): string {
  const { wrappers, leaf } = unwrapType(field.type);
  if (field.type === BYTES) return 'bytes';
  if (wrappers[0] === 'vector') return `list[${valueType(itemOf(field))}]`;
  if (wrappers[0] === 'Option') return `_Optional[${valueType(itemOf(field))}]`;
  return PLAIN.get(leaf)?.[1] ?? pythonName(leaf);
}

/**
 * Part of the module that does not depend on the types. Its names begin with an underscore; names of structs
 * don't.
 */
const RUNTIME = String.raw`"""The types that the application signs, and how to verify its answers.

Needs Python 3.9 or later and the package cryptography.

    answer = requests.post(url + "/process_data", json={"payload": payload}).json()
    message = read_answer(Type, answer, public_key)

public_key is the enclave's Ed25519 key, 32 bytes: take it from the Enclave object on Sui or from
a verified attestation document, never from the server that gave the answer. A valid signature
says who signed and when (message.timestamp_ms), not that the value is recent.
"""

from __future__ import annotations

import re as _re
from dataclasses import dataclass as _dataclass
from typing import Any as _Any
from typing import Generic as _Generic
from typing import Optional as _Optional
from typing import TypeVar as _TypeVar

from cryptography.exceptions import InvalidSignature as _InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey as _PublicKey

_T = _TypeVar("_T")
_UnicodeError = UnicodeError
_ValueError = ValueError


class SignedError(Exception):
    """An answer is refused. code is MALFORMED, INTENT or SIGNATURE."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@_dataclass(frozen=True)
class SignedMessage(_Generic[_T]):
    """What an enclave signed, and when by its clock, in milliseconds since 1970."""

    timestamp_ms: int
    data: _T


def read_answer(kind: type[_T], answer: _Any, public_key: bytes) -> SignedMessage[_T]:
    """Verifies an answer of an endpoint, as json.loads returns it.

    Fields that the type does not have are not signed, and are left out.
    Raises SignedError.
    """
    response = _member(answer, "response", "the answer")
    data = _member(response, "data", "the response")
    timestamp_ms = _member(response, "timestamp_ms", "the response")
    intent = _member(response, "intent", "the response")
    _require_intent(kind, intent)
    signature = _member(answer, "signature", "the answer")
    if not isinstance(signature, str) or not _re.fullmatch("[0-9a-fA-F]{128}", signature):
        raise _malformed("the signature", "is not 64 bytes in hexadecimal")
    message = encode_message(kind, timestamp_ms, data)
    verify_signature(message, bytes.fromhex(signature), public_key)
    return decode_message(kind, message)


def verify_signature(message: bytes, signature: bytes, public_key: bytes) -> None:
    """Checks an Ed25519 signature (RFC 8032) of a message in BCS. Raises SignedError."""
    try:
        _PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (_InvalidSignature, _ValueError):  # the latter for a key that is not 32 bytes
        raise SignedError("SIGNATURE", "the signature is not that of this key for this message") from None


def decode_message(kind: type[_T], message: bytes) -> SignedMessage[_T]:
    """Reads a message in BCS: intent, time, data. Does not verify it. Raises SignedError."""
    reader = _Reader(message)
    intent = _Integer(1).read(reader, "intent")
    _require_intent(kind, intent)
    timestamp_ms = _Integer(8).read(reader, "timestamp_ms")
    data = _SIGNED[kind][1].read(reader, "data")
    reader.finish()
    return SignedMessage(timestamp_ms, data)


def encode_message(kind: type, timestamp_ms: _Any, data: _Any) -> bytes:
    """Writes the signed message in BCS.

    data is an instance of the type, or what json.loads returns. Raises SignedError.
    """
    intent, codec = _SIGNED[kind]
    return bytes([intent]) + _Integer(8).write(timestamp_ms, "timestamp_ms") + codec.write(data, "data")


def _require_intent(kind: type, intent: _Any) -> None:
    expected = _SIGNED[kind][0]
    if type(intent) is not int or intent != expected:
        raise SignedError("INTENT", f"{kind.__name__} is signed with the intent {expected}, not {intent!r:.20}")


def _malformed(place: str, problem: str) -> SignedError:
    return SignedError("MALFORMED", f"{place} {problem}")


def _member(value: _Any, name: str, place: str) -> _Any:
    if not isinstance(value, dict) or name not in value:
        raise _malformed(place, f"has no {name}")
    return value[name]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = bytes(data)
        self._offset = 0

    def take(self, size: int, place: str) -> bytes:
        end = self._offset + size
        if end > len(self._data):
            raise _malformed(place, "is cut off: the message ends within it")
        taken = self._data[self._offset : end]
        self._offset = end
        return taken

    def take_length(self, place: str) -> int:
        """A length in ULEB128, in its shortest form, below 2**31."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1, place)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> 31 or (byte == 0 and shift > 0):
                    break
                return value
        raise _malformed(place, "has a length that is not valid ULEB128")

    def finish(self) -> None:
        excess = len(self._data) - self._offset
        if excess > 0:
            raise _malformed("the message", f"is longer than its type: {excess} bytes are left")


def _write_length(length: int) -> bytes:
    encoded = bytearray()
    while length >= 0x80:
        encoded.append(length & 0x7F | 0x80)
        length >>= 7
    encoded.append(length)
    return bytes(encoded)


class _Bool:
    def read(self, reader: _Reader, place: str) -> bool:
        byte = reader.take(1, place)[0]
        if byte > 1:
            raise _malformed(place, "is not a bool: its byte must be 0 or 1")
        return byte == 1

    def write(self, value: _Any, place: str) -> bytes:
        if type(value) is not bool:
            raise _malformed(place, "is not a bool")
        return bytes([value])


class _Integer:
    def __init__(self, size: int) -> None:
        self._size = size

    def read(self, reader: _Reader, place: str) -> int:
        return int.from_bytes(reader.take(self._size, place), "little")

    def write(self, value: _Any, place: str) -> bytes:
        if self._size >= 8 and isinstance(value, str) and _re.fullmatch("0|[1-9][0-9]{0,77}", value):
            value = int(value)
        if type(value) is not int or value < 0 or value >> 8 * self._size:
            raise _malformed(place, f"is not an integer of {8 * self._size} bits without a sign")
        return value.to_bytes(self._size, "little")


class _Address:
    def read(self, reader: _Reader, place: str) -> str:
        return "0x" + reader.take(32, place).hex()

    def write(self, value: _Any, place: str) -> bytes:
        if not isinstance(value, str) or not _re.fullmatch("0x[0-9a-f]{64}", value):
            raise _malformed(place, "is not 0x and 64 hexadecimal digits in lower case")
        return bytes.fromhex(value[2:])


class _Text:
    def read(self, reader: _Reader, place: str) -> str:
        encoded = reader.take(reader.take_length(place), place)
        try:
            return encoded.decode("utf-8")
        except _UnicodeError:
            raise _malformed(place, "is not valid UTF-8") from None

    def write(self, value: _Any, place: str) -> bytes:
        if not isinstance(value, str):
            raise _malformed(place, "is not a string")
        try:
            encoded = value.encode("utf-8")
        except _UnicodeError:
            raise _malformed(place, "is not well-formed Unicode") from None
        return _write_length(len(encoded)) + encoded


class _Bytes:
    def read(self, reader: _Reader, place: str) -> bytes:
        return reader.take(reader.take_length(place), place)

    def write(self, value: _Any, place: str) -> bytes:
        if isinstance(value, list):
            if not all(type(byte) is int and 0 <= byte <= 255 for byte in value):
                raise _malformed(place, "is not a list of integers from 0 to 255")
        elif not isinstance(value, bytes):
            raise _malformed(place, "is not a list of integers from 0 to 255, or bytes")
        return _write_length(len(value)) + bytes(value)


class _Vector:
    def __init__(self, item: _Any) -> None:
        self._item = item

    def read(self, reader: _Reader, place: str) -> list[_Any]:
        length = reader.take_length(place)
        return [self._item.read(reader, f"{place}[{index}]") for index in range(length)]

    def write(self, value: _Any, place: str) -> bytes:
        if not isinstance(value, list):
            raise _malformed(place, "is not a list")
        items = [self._item.write(item, f"{place}[{index}]") for index, item in enumerate(value)]
        return _write_length(len(items)) + b"".join(items)


class _Option:
    def __init__(self, item: _Any) -> None:
        self._item = item

    def read(self, reader: _Reader, place: str) -> _Any:
        tag = reader.take(1, place)[0]
        if tag > 1:
            raise _malformed(place, "is not an Option: its first byte must be 0 or 1")
        return self._item.read(reader, place) if tag == 1 else None

    def write(self, value: _Any, place: str) -> bytes:
        return b"\x00" if value is None else b"\x01" + self._item.write(value, place)


class _Struct:
    def __init__(self, kind: type, fields: list[tuple[str, str, _Any]]) -> None:
        self._kind = kind
        self._fields = fields

    def read(self, reader: _Reader, place: str) -> _Any:
        values = [codec.read(reader, f"{place}.{name}") for name, _, codec in self._fields]
        return self._kind(*values)

    def write(self, value: _Any, place: str) -> bytes:
        if isinstance(value, self._kind):
            value = {name: getattr(value, attribute) for name, attribute, _ in self._fields}
        return b"".join(
            codec.write(_member(value, name, place), f"{place}.{name}") for name, _, codec in self._fields
        )
`;
