/** Generates the signed types for Go: one file that needs only the standard library. */
import {
  type SchemaField,
  type SchemaStruct,
  type SchemaType,
  unwrapType,
} from 'sui-enclave/wire/schema_type';
import { itemOf, requireDistinct, type SignedStructs } from './signed_structs.ts';

/** Codecs of the file and the types of their values, by the name of the type in Move. */
const PLAIN: ReadonlyMap<string, readonly [codec: string, value: string]> = new Map([
  ['bool', ['boolCodec', 'bool']],
  ['u8', ['u8Codec', 'uint8']],
  ['u16', ['u16Codec', 'uint16']],
  ['u32', ['u32Codec', 'uint32']],
  ['u64', ['u64Codec', 'uint64']],
  ['u128', ['u128Codec', '*big.Int']],
  ['u256', ['u256Codec', '*big.Int']],
  ['address', ['addressCodec', 'SuiAddress']],
  ['String', ['textCodec', 'string']],
]);
const BYTES = 'vector<u8>';

/**
 * Returns the content of `signed.go`, without its header, as gofmt formats it.
 *
 * @throws GenError: GEN_CONFLICT, if two fields would have the same name
 */
export function goModule({ signed, all }: SignedStructs): string {
  return `${[RUNTIME, ...all.map(structText), ...signed.map(bindingText)].join('\n')}`;
}

/** Converts `price_in_cents` to `PriceInCents`. */
function goName(field: string): string {
  return field.replace(/(?:^|_+)([A-Za-z0-9])/g, (_, first: string) => first.toUpperCase());
}

function codecName(struct: string): string {
  return `codecOf${struct}`;
}

function structText({ name, fields }: SchemaStruct): string {
  const names = fields.map((field) => goName(field.name));
  requireDistinct('field of Go', names);
  const width = Math.max(...names.map((field) => field.length));
  const lines = (format: (field: SchemaField, name: string) => string) =>
    fields.map((field, index) => `${format(field, names[index] ?? '')}\n`).join('');
  return `// ${name} is a struct of the same name in Move.
type ${name} struct {
${lines((field, member) => `\t${member.padEnd(width)} ${valueType(field)}`)}}

var ${codecName(name)} = codec[${name}]{
	read: func(r *reader, place string) (v ${name}) {
${lines((field, member) => `\t\tv.${member} = ${codecText(field)}.read(r, place+".${field.name}")`)}		return v
	},
	write: func(w *writer, v ${name}, place string) {
${lines((field, member) => `\t\t${codecText(field)}.write(w, v.${member}, place+".${field.name}")`)}	},
	parse: func(json any, place string) (v ${name}) {
${lines((field, member) => `\t\tv.${member} = ${codecText(field)}.parse(member(json, "${field.name}", place), place+".${field.name}")`)}		return v
	},
}
`;
}

function bindingText({ name, intent }: SchemaType): string {
  return `func (${name}) signedAs() (byte, codec[${name}]) { return ${intent}, ${codecName(name)} }
`;
}

function codecText(field: SchemaField): string {
  const { wrappers, leaf } = unwrapType(field.type);
  if (field.type === BYTES) return 'bytesCodec';
  if (wrappers[0] === 'vector') return `vectorOf(${codecText(itemOf(field))})`;
  if (wrappers[0] === 'Option') return `optionOf(${codecText(itemOf(field))})`;
  return PLAIN.get(leaf)?.[0] ?? codecName(leaf);
}

function valueType(field: SchemaField): string {
  const { wrappers, leaf } = unwrapType(field.type);
  if (field.type === BYTES) return '[]byte';
  if (wrappers[0] === 'vector') return `[]${valueType(itemOf(field))}`;
  if (wrappers[0] === 'Option') return `*${valueType(itemOf(field))}`;
  return PLAIN.get(leaf)?.[1] ?? leaf;
}

/** Part of the file that does not depend on the types. `RESERVED_STRUCTS` has its exported names. */
const RUNTIME = `// Package signed has the types that the application signs, and verifies its answers.
//
// It needs Go 1.21 or later, and no other module.
//
//	message, err := signed.ReadAnswer[signed.Type](body, publicKey)
//
// publicKey is the enclave's Ed25519 key, 32 bytes: take it from the Enclave object on Sui or from
// a verified attestation document, never from the server that gave the answer. A valid signature
// says who signed and when (message.TimestampMs), not that the value is recent.
package signed

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"
)

// SignedError says why an answer is refused. Code is MALFORMED, INTENT or SIGNATURE.
type SignedError struct {
	Code    string
	Message string
}

func (e *SignedError) Error() string { return e.Code + ": " + e.Message }

// SignedMessage is what an enclave signed, and when by its clock, in milliseconds since 1970.
type SignedMessage[T any] struct {
	TimestampMs uint64
	Data        T
}

// SuiAddress is an address or object id of Sui.
type SuiAddress [32]byte

func (a SuiAddress) String() string { return "0x" + hex.EncodeToString(a[:]) }

type signedType[T any] interface {
	signedAs() (intent byte, payload codec[T])
}

// ReadAnswer verifies an answer of an endpoint, the body in JSON. Fields that the type does not
// have are not signed, and are left out. Its errors are of type *SignedError.
func ReadAnswer[T signedType[T]](answer []byte, publicKey ed25519.PublicKey) (_ SignedMessage[T], err error) {
	defer catch(&err)
	var message SignedMessage[T]
	intent, payload := message.Data.signedAs()
	value := parseJSON(answer)
	response := member(value, "response", "the answer")
	if received := u8Codec.parse(member(response, "intent", "the response"), "intent"); received != intent {
		fail("INTENT", "the intent is %d, not %d", received, intent)
	}
	text, _ := member(value, "signature", "the answer").(string)
	signature, err := hex.DecodeString(text)
	if err != nil || len(signature) != ed25519.SignatureSize {
		malformed("the signature", "is not 64 bytes in hexadecimal")
	}
	message.TimestampMs = u64Codec.parse(member(response, "timestamp_ms", "the response"), "timestamp_ms")
	message.Data = payload.parse(member(response, "data", "the response"), "data")
	encoded, err := EncodeMessage(message)
	if err == nil {
		err = VerifySignature(encoded, signature, publicKey)
	}
	if err != nil {
		return SignedMessage[T]{}, err
	}
	return message, nil
}

// VerifySignature checks an Ed25519 signature (RFC 8032) of a message in BCS.
func VerifySignature(message, signature []byte, publicKey ed25519.PublicKey) error {
	if len(publicKey) != ed25519.PublicKeySize || !ed25519.Verify(publicKey, message, signature) {
		return &SignedError{"SIGNATURE", "the signature is not that of this key for this message"}
	}
	return nil
}

// DecodeMessage reads a message in BCS: intent, time, data. It does not verify it.
func DecodeMessage[T signedType[T]](encoded []byte) (_ SignedMessage[T], err error) {
	defer catch(&err)
	var message SignedMessage[T]
	intent, payload := message.Data.signedAs()
	r := &reader{encoded}
	if received := u8Codec.read(r, "intent"); received != intent {
		fail("INTENT", "the intent is %d, not %d", received, intent)
	}
	message.TimestampMs = u64Codec.read(r, "timestamp_ms")
	message.Data = payload.read(r, "data")
	if len(r.left) > 0 {
		malformed("the message", fmt.Sprintf("is longer than its type: %d bytes are left", len(r.left)))
	}
	return message, nil
}

// EncodeMessage writes the signed message in BCS.
func EncodeMessage[T signedType[T]](message SignedMessage[T]) (encoded []byte, err error) {
	defer catch(&err)
	intent, payload := message.Data.signedAs()
	w := &writer{}
	u8Codec.write(w, intent, "intent")
	u64Codec.write(w, message.TimestampMs, "timestamp_ms")
	payload.write(w, message.Data, "data")
	return w.Bytes(), nil
}

// fail ends a reader or writer; catch returns its error at the edge.
func fail(code, format string, values ...any) {
	panic(&SignedError{code, fmt.Sprintf(format, values...)})
}

func malformed(place, problem string) { fail("MALFORMED", "%s %s", place, problem) }

func catch(err *error) {
	switch problem := recover().(type) {
	case nil:
	case *SignedError:
		*err = problem
	default:
		panic(problem)
	}
}

func parseJSON(text []byte) (value any) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		malformed("the answer", "is not JSON")
	}
	if _, err := decoder.Token(); err != io.EOF {
		malformed("the answer", "has something behind its JSON")
	}
	return value
}

func member(value any, name, place string) any {
	object, _ := value.(map[string]any)
	content, ok := object[name]
	if !ok {
		malformed(place, "has no "+name)
	}
	return content
}

type reader struct{ left []byte }

func (r *reader) take(size int, place string) []byte {
	if size > len(r.left) {
		malformed(place, "is cut off: the message ends within it")
	}
	taken := r.left[:size]
	r.left = r.left[size:]
	return taken
}

// takeLength reads a length in ULEB128, in its shortest form, below 2^31.
func (r *reader) takeLength(place string) int {
	value := uint64(0)
	for shift := 0; shift < 35; shift += 7 {
		b := r.take(1, place)[0]
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if value>>31 != 0 || b == 0 && shift > 0 {
				break
			}
			return int(value)
		}
	}
	malformed(place, "has a length that is not valid ULEB128")
	return 0
}

type writer struct{ bytes.Buffer }

func (w *writer) writeLength(length int) {
	w.Write(binary.AppendUvarint(nil, uint64(length)))
}

// codec reads and writes a type in BCS, and parses it from JSON.
type codec[T any] struct {
	read  func(r *reader, place string) T
	write func(w *writer, value T, place string)
	parse func(json any, place string) T
}

var boolCodec = codec[bool]{
	read: func(r *reader, place string) bool {
		b := r.take(1, place)[0]
		if b > 1 {
			malformed(place, "is not a bool: its byte must be 0 or 1")
		}
		return b == 1
	},
	write: func(w *writer, value bool, _ string) {
		if value {
			w.WriteByte(1)
		} else {
			w.WriteByte(0)
		}
	},
	parse: func(json any, place string) bool {
		value, ok := json.(bool)
		if !ok {
			malformed(place, "is not a bool")
		}
		return value
	},
}

var decimal = regexp.MustCompile("^(0|[1-9][0-9]{0,77})$")

// parseInteger takes a number or, from 64 bits on, a decimal string.
func parseInteger(value any, bits int, place string) *big.Int {
	digits := ""
	switch form := value.(type) {
	case json.Number:
		digits = form.String()
	case string:
		if bits >= 64 {
			digits = form
		}
	}
	number := new(big.Int)
	if decimal.MatchString(digits) {
		number.SetString(digits, 10)
	}
	if !decimal.MatchString(digits) || number.BitLen() > bits {
		malformed(place, "is not an integer of "+strconv.Itoa(bits)+" bits without a sign")
	}
	return number
}

func integerCodec[T uint8 | uint16 | uint32 | uint64](bits int) codec[T] {
	return codec[T]{
		read: func(r *reader, place string) T {
			padded := make([]byte, 8)
			copy(padded, r.take(bits/8, place))
			return T(binary.LittleEndian.Uint64(padded))
		},
		write: func(w *writer, value T, _ string) {
			w.Write(binary.LittleEndian.AppendUint64(nil, uint64(value))[:bits/8])
		},
		parse: func(json any, place string) T { return T(parseInteger(json, bits, place).Uint64()) },
	}
}

func bigCodec(bits int) codec[*big.Int] {
	return codec[*big.Int]{
		read: func(r *reader, place string) *big.Int {
			reversed := slices.Clone(r.take(bits/8, place))
			slices.Reverse(reversed)
			return new(big.Int).SetBytes(reversed)
		},
		write: func(w *writer, value *big.Int, place string) {
			if value == nil || value.Sign() < 0 || value.BitLen() > bits {
				malformed(place, "is not an integer of "+strconv.Itoa(bits)+" bits without a sign")
			}
			encoded := value.FillBytes(make([]byte, bits/8))
			slices.Reverse(encoded)
			w.Write(encoded)
		},
		parse: func(json any, place string) *big.Int { return parseInteger(json, bits, place) },
	}
}

var (
	u8Codec   = integerCodec[uint8](8)
	u16Codec  = integerCodec[uint16](16)
	u32Codec  = integerCodec[uint32](32)
	u64Codec  = integerCodec[uint64](64)
	u128Codec = bigCodec(128)
	u256Codec = bigCodec(256)
)

var addressForm = regexp.MustCompile("^0x[0-9a-f]{64}$")

var addressCodec = codec[SuiAddress]{
	read:  func(r *reader, place string) SuiAddress { return SuiAddress(r.take(32, place)) },
	write: func(w *writer, value SuiAddress, _ string) { w.Write(value[:]) },
	parse: func(json any, place string) (value SuiAddress) {
		text, _ := json.(string)
		if !addressForm.MatchString(text) {
			malformed(place, "is not 0x and 64 hexadecimal digits in lower case")
		}
		hex.Decode(value[:], []byte(text[2:]))
		return value
	},
}

var textCodec = codec[string]{
	read: func(r *reader, place string) string {
		encoded := r.take(r.takeLength(place), place)
		if !utf8.Valid(encoded) {
			malformed(place, "is not valid UTF-8")
		}
		return string(encoded)
	},
	write: func(w *writer, value string, place string) {
		if !utf8.ValidString(value) {
			malformed(place, "is not valid UTF-8")
		}
		w.writeLength(len(value))
		w.WriteString(value)
	},
	parse: func(json any, place string) string {
		value, ok := json.(string)
		if !ok {
			malformed(place, "is not a string")
		}
		return value
	},
}

var bytesCodec = codec[[]byte]{
	read: func(r *reader, place string) []byte { return slices.Clone(r.take(r.takeLength(place), place)) },
	write: func(w *writer, value []byte, _ string) {
		w.writeLength(len(value))
		w.Write(value)
	},
	parse: func(json any, place string) []byte { return vectorOf(u8Codec).parse(json, place) },
}

func vectorOf[T any](item codec[T]) codec[[]T] {
	return codec[[]T]{
		read: func(r *reader, place string) []T {
			length := r.takeLength(place)
			items := []T{}
			for index := 0; index < length; index++ {
				items = append(items, item.read(r, place+"["+strconv.Itoa(index)+"]"))
			}
			return items
		},
		write: func(w *writer, items []T, place string) {
			w.writeLength(len(items))
			for index, value := range items {
				item.write(w, value, place+"["+strconv.Itoa(index)+"]")
			}
		},
		parse: func(json any, place string) []T {
			values, ok := json.([]any)
			if !ok {
				malformed(place, "is not a list")
			}
			items := []T{}
			for index, value := range values {
				items = append(items, item.parse(value, place+"["+strconv.Itoa(index)+"]"))
			}
			return items
		},
	}
}

func optionOf[T any](item codec[T]) codec[*T] {
	return codec[*T]{
		read: func(r *reader, place string) *T {
			tag := r.take(1, place)[0]
			if tag > 1 {
				malformed(place, "is not an Option: its first byte must be 0 or 1")
			}
			if tag == 0 {
				return nil
			}
			value := item.read(r, place)
			return &value
		},
		write: func(w *writer, value *T, place string) {
			if value == nil {
				w.WriteByte(0)
				return
			}
			w.WriteByte(1)
			item.write(w, *value, place)
		},
		parse: func(json any, place string) *T {
			if json == nil {
				return nil
			}
			value := item.parse(json, place)
			return &value
		},
	}
}
`;
