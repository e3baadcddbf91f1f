package iden3

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"sui-enclave/prover/internal/mem"
	"sui-enclave/prover/internal/par"
)

// A coefficient in section 4: matrix (u32: 0 is A, 1 is B), row (u32), wire (u32), v·R² (32 bytes).
const coefficientSize = 12 + fr.Bytes

// readMatrices reads section 4 twice, in parts: once to count each row's terms, once to place them.
func (k *Key) readMatrices(c *container) error {
	s, ok := c.sections[zkeyCoefficients]
	if !ok || s.size < 4 {
		return fmt.Errorf("section 4 (coefficients) is missing or empty")
	}
	var head [4]byte
	if err := c.readAt(head[:], s.offset); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(head[:]))
	if s.size != 4+n*coefficientSize {
		return fmt.Errorf("section 4: the number of coefficients, %d, does not fit its size, %d", n, s.size)
	}
	l := &loader{container: c, offset: s.offset + 4, count: int(n), key: k, values: newValueTable()}
	if err := l.each(l.countRow); err != nil {
		return err
	}
	if err := l.allocate(); err != nil {
		return err
	}
	if err := l.each(l.place); err != nil {
		return err
	}
	l.finish()
	return nil
}

// loader turns a list of coefficients in any order into rows.
type loader struct {
	*container
	offset int64
	count  int
	key    *Key
	start  [2][]atomic.Uint32 // first each row's number of terms, then where its next term goes
	values *valueTable
	caches []cache // one for each worker
}

// each calls f for every coefficient.
func (l *loader) each(f func(record []byte, worker int) error) error {
	if l.start[0] == nil {
		l.start = [2][]atomic.Uint32{make([]atomic.Uint32, l.key.Domain+1), make([]atomic.Uint32, l.key.Domain+1)}
		l.caches = make([]cache, par.Workers())
	}
	const part = 1 << 13
	buffers := make([][]byte, par.Workers())
	return par.Try((l.count+part-1)/part, func(task, worker int) error {
		if buffers[worker] == nil {
			buffers[worker] = make([]byte, min(part, l.count)*coefficientSize)
		}
		from, to := task*part, min((task+1)*part, l.count)
		b := buffers[worker][:(to-from)*coefficientSize]
		if err := l.readAt(b, l.offset+int64(from)*coefficientSize); err != nil {
			return err
		}
		for ; len(b) > 0; b = b[coefficientSize:] {
			if err := f(b[:coefficientSize], worker); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *loader) countRow(record []byte, _ int) error {
	matrix, row, wire := header(record)
	if matrix > 1 || int64(row) >= int64(l.key.Domain) || int64(wire) >= int64(l.key.Wires) {
		return fmt.Errorf("section 4 has a coefficient for matrix %d, row %d, wire %d, which doesn't exist", matrix, row, wire)
	}
	l.start[matrix][row].Add(1)
	return nil
}

func header(record []byte) (matrix, row, wire uint32) {
	return binary.LittleEndian.Uint32(record), binary.LittleEndian.Uint32(record[4:]), binary.LittleEndian.Uint32(record[8:])
}

// allocate turns the rows' numbers of terms into the rows' ends, from which place counts down to the rows' starts.
func (l *loader) allocate() (err error) {
	for m := range l.start {
		sum := uint32(0)
		for i := range l.start[m] {
			sum += l.start[m][i].Load()
			l.start[m][i].Store(sum)
		}
		if l.key.Rows[m].Terms, err = mem.Slice[Coefficient](&l.key.arena, int(sum)); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) place(record []byte, worker int) error {
	matrix, row, wire := header(record)
	value, err := l.caches[worker].id(l.values, (*[fr.Bytes]byte)(record[12:]))
	if err != nil {
		return err
	}
	l.key.Rows[matrix].Terms[l.start[matrix][row].Add(^uint32(0))] = Coefficient{wire, value}
	return nil
}

func (l *loader) finish() {
	for m := range l.start {
		start := make([]uint32, len(l.start[m]))
		for i := range start {
			start[i] = l.start[m][i].Load()
		}
		l.key.Rows[m].Start, l.key.Rows[m].Values = start, &l.values.Values
	}
}

// valueTable numbers the different coefficients.
type valueTable struct {
	sync.Mutex
	ids map[[fr.Bytes]byte]uint32
	Values
}

func newValueTable() *valueTable { return &valueTable{ids: map[[fr.Bytes]byte]uint32{}} }

func (t *valueTable) id(raw *[fr.Bytes]byte) (uint32, error) {
	t.Lock()
	defer t.Unlock()
	if id, ok := t.ids[*raw]; ok {
		return id, nil
	}
	var twice, montgomery fr.Element
	copy(mem.Bytes(twice[:]), raw[:])
	if !below((*[4]uint64)(&twice), &order) {
		return 0, fmt.Errorf("section 4 has a coefficient that is not below the group's order")
	}
	montgomery.Mul(&twice, &fr.Element{1}) // v·R² · 1 / R
	id := uint32(len(t.ids))
	t.ids[*raw] = id
	t.Twice, t.Montgomery = append(t.Twice, twice), append(t.Montgomery, montgomery)
	return id, nil
}

// cache saves a worker most of the table's locking and hashing, since nearly all coefficients are a few powers of
// two.
type cache struct {
	used [1 << 10]bool
	raw  [1 << 10][fr.Bytes]byte
	ids  [1 << 10]uint32
}

func (c *cache) id(t *valueTable, raw *[fr.Bytes]byte) (uint32, error) {
	at := (binary.LittleEndian.Uint64(raw[:]) * 0x9e3779b97f4a7c15) >> 54
	if c.used[at] && c.raw[at] == *raw {
		return c.ids[at], nil
	}
	id, err := t.id(raw)
	if err == nil {
		c.used[at], c.raw[at], c.ids[at] = true, *raw, id
	}
	return id, err
}
