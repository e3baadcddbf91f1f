// Package worker serves a prover over a pair of pipes. Each request is a frame, and so is each answer.
//
// A frame has the length of what follows (u32), its type (u8), an id (u32) that the answer repeats, and a body.
// Integers are little-endian. Requests are:
//
//	1 load    body: path of a .zkey, UTF-8, up to 4096 bytes. Replaces the loaded key.
//	2 prove   body: a .wtns of exactly the size that the loaded key requires.
//	3 status  no body. Answered at once, even during a proof.
//	4 cancel  no body. Ends the prove request with the same id, if it is running. A cancel itself gets no answer.
//
// An answer's type is the request's plus 128, or 255 for an error; its body is JSON: Loaded, Proved, Status or Failed.
// One proof or load runs at a time. While it runs, further ones are refused as busy. The worker ends when its input
// ends.
package worker

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"sui-enclave/prover/internal/cpu"
	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/groth16"
	"sui-enclave/prover/internal/iden3"
	"sui-enclave/prover/internal/mem"
)

// Types of frames.
const (
	TypeLoad   = 1
	TypeProve  = 2
	TypeStatus = 3
	TypeCancel = 4
	answerBit  = 0x80
	typeError  = 0xff

	lengthSize = 4
	headSize   = 1 + 4 // type and id, which the length includes
	maxPath    = 4096
)

// Loaded answers load, and is part of a status.
type Loaded struct {
	Wires       int  `json:"wires"`
	Public      int  `json:"public"`
	Domain      int  `json:"domain"`
	Development bool `json:"development"` // anyone who knows the key's seed can forge proofs
	// WitnessBytes is the size of a prove request's body.
	WitnessBytes int `json:"witnessBytes"`
}

// Proved answers prove. Proof and Public are in snarkjs' form.
type Proved struct {
	Proof   *iden3.Proof `json:"proof"`
	Public  iden3.Public `json:"public"`
	Seconds float64      `json:"seconds"`
}

// Status answers status.
type Status struct {
	State    string  `json:"state"` // "no key", "idle", "loading" or "proving"
	Key      *Loaded `json:"key,omitempty"`
	Engine   string  `json:"engine"`
	Path     string  `json:"path"` // the code path that runs: see cpu.Path
	Proofs   int     `json:"proofs"`
	Failures int     `json:"failures"`
	Progress int     `json:"progress"` // number of steps of all proofs so far, which grows while a proof makes progress
}

// Failed is the body of an answer of type 255.
type Failed struct {
	Code    failure.Code `json:"code"`
	Message string       `json:"message"`
}

const (
	noKey   = "no key"
	idle    = "idle"
	loading = "loading"
	proving = "proving"
)

// Worker serves a prover over two pipes: see the package.
type Worker struct {
	in     io.Reader // unbuffered: a buffer would keep the beginning of a witness
	out    io.Writer
	engine groth16.Engine

	sending sync.Mutex
	running sync.WaitGroup

	mutex     sync.Mutex // guards what follows
	status    Status
	proof     uint32 // the id of the running prove request, if the state is proving
	cancelled bool   // whether this request was cancelled

	// Only the running task uses these, and at most one task runs.
	prover  *groth16.Prover
	witness []byte
	arena   mem.Arena
}

// New returns a worker without a key.
func New(in io.Reader, out io.Writer, engine groth16.Engine) *Worker {
	return &Worker{
		in: in, out: out, engine: engine,
		status: Status{State: noKey, Engine: string(engine), Path: string(cpu.Chosen())},
	}
}

// Run serves requests until the input ends, which is not an error. It returns an error if the input breaks the protocol
// or an answer can't be written. At its end, it wipes all memory.
func (w *Worker) Run() error {
	defer w.unload()
	defer w.running.Wait()
	for {
		if err := w.next(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// request is a frame's head.
type request struct {
	kind byte
	id   uint32
	size int64 // of the body's unread part
}

// next serves one request. Each error that it returns ends the worker: io.EOF if the input ends between frames, or an
// error of the input or output.
func (w *Worker) next() error {
	var head [lengthSize + headSize]byte
	if _, err := io.ReadFull(w.in, head[:]); err != nil {
		return torn(err)
	}
	length := binary.LittleEndian.Uint32(head[:])
	if length < headSize {
		return failure.New(failure.BadRequest, "the length of a frame is %d, less than that of its head", length)
	}
	r := request{head[lengthSize], binary.LittleEndian.Uint32(head[lengthSize+1:]), int64(length) - headSize}
	err := w.serve(&r)
	if err := w.drop(&r); err != nil {
		return err
	}
	if err != nil {
		return w.fail(r.id, err)
	}
	return nil
}

// drop reads the part of a body that serve left unread. It may be part of a witness, so drop wipes its buffer, which
// io.Discard would not do.
func (w *Worker) drop(r *request) error {
	if r.size == 0 {
		return nil
	}
	var buffer [1 << 13]byte
	defer clear(buffer[:])
	for r.size > 0 {
		if err := w.read(r, buffer[:min(r.size, int64(len(buffer)))]); errors.Is(err, io.EOF) {
			return torn(io.ErrUnexpectedEOF)
		} else if err != nil {
			return torn(err)
		}
	}
	return nil
}

func torn(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return failure.New(failure.BadRequest, "the input ends within a frame")
	}
	return err
}

func (w *Worker) serve(r *request) error {
	switch r.kind {
	case TypeStatus:
		if r.size != 0 {
			return failure.New(failure.BadRequest, "a status request must have no body, but this request has a body of size %d", r.size)
		}
		return w.answer(r, w.Status())
	case TypeCancel:
		if r.size != 0 {
			return failure.New(failure.BadRequest, "a cancel request must have no body, but this request has a body of size %d", r.size)
		}
		w.cancel(r.id)
		return nil
	case TypeLoad:
		return w.serveLoad(r)
	case TypeProve:
		return w.serveProve(r)
	}
	return failure.New(failure.BadRequest, "request type %d doesn't exist", r.kind)
}

// read fills b with the next bytes of a request's body.
func (w *Worker) read(r *request, b []byte) error {
	n, err := io.ReadFull(w.in, b)
	r.size -= int64(n)
	return err
}

func (w *Worker) serveLoad(r *request) error {
	if r.size == 0 || r.size > maxPath {
		return failure.New(failure.BadRequest, "a load request's body is a path of 1 to %d bytes, not %d", maxPath, r.size)
	}
	path := make([]byte, r.size)
	if err := w.read(r, path); err != nil {
		return err
	}
	if err := w.begin(loading); err != nil {
		return err
	}
	w.run(r, func() (any, error) { return w.load(string(path)) })
	return nil
}

func (w *Worker) serveProve(r *request) error {
	w.mutex.Lock()
	key := w.status.Key
	w.mutex.Unlock()
	if key == nil {
		if err := w.begin(proving); err != nil { // busy loading
			return err
		}
		w.end()
		return failure.New(failure.NoKey, "no key is loaded")
	}
	if r.size != int64(key.WitnessBytes) {
		return failure.New(failure.BadWitness, "a witness for this key has %d bytes, not %d", key.WitnessBytes, r.size)
	}
	if err := w.begin(proving); err != nil {
		return err
	}
	w.mutex.Lock()
	w.proof, w.cancelled = r.id, false
	w.mutex.Unlock()
	if err := w.read(r, w.witness); err != nil {
		w.end()
		return err
	}
	w.run(r, w.prove)
	return nil
}

// begin claims the prover for a task, and end releases it. begin waits until the previous task has wiped its memory.
func (w *Worker) begin(state string) error {
	if err := w.claim(state); err != nil {
		return err
	}
	w.running.Wait()
	return nil
}

func (w *Worker) claim(state string) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if s := w.status.State; s == loading || s == proving {
		return failure.New(failure.Busy, "the worker is %s, and runs one task at a time", s)
	}
	w.status.State = state
	return nil
}

func (w *Worker) end() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.status.State = noKey
	if w.status.Key != nil {
		w.status.State = idle
	}
}

// run runs a task while further frames are read. It sends the answer first, and then wipes the memory of the task.
func (w *Worker) run(r *request, task func() (any, error)) {
	head := *r
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		defer w.wipe()
		body, err := task()
		w.count(head.kind, err)
		w.end()
		if err != nil {
			_ = w.fail(head.id, err)
			return
		}
		_ = w.answer(&head, body)
	}()
}

// cancel cancels the running proof if it has this id.
func (w *Worker) cancel(id uint32) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.status.State == proving && w.proof == id {
		w.cancelled = true
	}
}

// step is called between the steps of a proof.
func (w *Worker) step() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.status.Progress++
	if w.cancelled {
		return failure.New(failure.Cancelled, "the request was cancelled")
	}
	return nil
}

func (w *Worker) count(kind byte, err error) {
	if kind != TypeProve || failure.CodeOf(err) == failure.Cancelled {
		return
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if err != nil {
		w.status.Failures++
	} else {
		w.status.Proofs++
	}
}

// Status returns the current status.
func (w *Worker) Status() Status {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.status
}

// Load loads a key. It must be called before Run.
func (w *Worker) Load(path string) error {
	_, err := w.load(path)
	w.end()
	return err
}

func (w *Worker) load(path string) (any, error) {
	w.unload() // two keys at a time might not fit into memory
	var key *iden3.Key
	if err := iden3.WithFile(path, failure.BadKey, func(f io.ReaderAt, size int64) (err error) {
		key, err = iden3.ReadKey(f, size)
		return err
	}); err != nil {
		return nil, err
	}
	var err error
	if w.prover, err = groth16.NewProver(key, w.engine); err != nil {
		return nil, err
	}
	w.prover.Step = w.step
	loaded := &Loaded{key.Wires, key.Public, key.Domain, key.Development, iden3.WitnessOverhead + 32*key.Wires}
	if w.witness, err = mem.Slice[byte](&w.arena, loaded.WitnessBytes); err != nil {
		w.unload()
		return nil, err
	}
	w.setKey(loaded)
	return loaded, nil
}

func (w *Worker) setKey(key *Loaded) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.status.Key = key
}

func (w *Worker) unload() {
	w.setKey(nil)
	w.arena.Free()
	w.witness = nil
	if w.prover != nil {
		w.prover.Free()
		w.prover = nil
	}
}

func (w *Worker) wipe() {
	clear(w.witness)
	if w.prover != nil {
		w.prover.Wipe()
	}
}

func (w *Worker) prove() (any, error) {
	begin := time.Now()
	err := iden3.ReadWitness(bytes.NewReader(w.witness), int64(len(w.witness)), w.prover.Witness)
	if err != nil {
		return nil, err
	}
	proof, public, err := w.prover.Prove()
	if err != nil {
		return nil, err
	}
	return Proved{proof, public, time.Since(begin).Seconds()}, nil
}

func (w *Worker) answer(r *request, body any) error {
	return w.send(r.kind|answerBit, r.id, body)
}

func (w *Worker) fail(id uint32, err error) error {
	return w.send(typeError, id, Failed{failure.CodeOf(err), err.Error()})
}

func (w *Worker) send(kind byte, id uint32, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	frame := binary.LittleEndian.AppendUint32(nil, uint32(headSize+len(b)))
	frame = append(frame, kind)
	frame = binary.LittleEndian.AppendUint32(frame, id)
	w.sending.Lock()
	defer w.sending.Unlock()
	_, err = w.out.Write(append(frame, b...))
	return err
}
