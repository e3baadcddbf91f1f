package worker

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sui-enclave/prover/internal/cpu"
	"sui-enclave/prover/internal/failure"
	"sui-enclave/prover/internal/groth16"
	"sui-enclave/prover/internal/iden3"
	"sui-enclave/prover/internal/synth"
)

var statement = synth.New(200, 100, 1)

// keyFile writes a key for the circuit of statement, and returns its path.
func keyFile(t testing.TB) string {
	t.Helper()
	b := statement.R1CS()
	circuit, err := iden3.ReadCircuit(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "test.zkey")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := groth16.Setup(circuit, "worker", f); err != nil {
		t.Fatal(err)
	}
	return path
}

func frame(kind byte, id uint32, body []byte) []byte {
	f := binary.LittleEndian.AppendUint32(nil, uint32(headSize+len(body)))
	f = binary.LittleEndian.AppendUint32(append(f, kind), id)
	return append(f, body...)
}

// client is the other end of a running worker's pipes.
type client struct {
	t     *testing.T
	in    *io.PipeWriter
	out   io.Reader
	ended chan error
	w     *Worker
}

func start(t *testing.T) *client {
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	c := &client{t, inWrite, outRead, make(chan error, 1), New(inRead, outWrite, groth16.Own)}
	go func() { c.ended <- c.w.Run() }()
	t.Cleanup(func() { inWrite.Close() })
	return c
}

func (c *client) send(kind byte, id uint32, body []byte) {
	c.t.Helper()
	if _, err := c.in.Write(frame(kind, id, body)); err != nil {
		c.t.Fatal(err)
	}
}

// receive reads one answer, which must have this type and id.
func (c *client) receive(kind byte, id uint32, into any) {
	c.t.Helper()
	var head [lengthSize + headSize]byte
	if _, err := io.ReadFull(c.out, head[:]); err != nil {
		c.t.Fatal(err)
	}
	body := make([]byte, binary.LittleEndian.Uint32(head[:])-headSize)
	if _, err := io.ReadFull(c.out, body); err != nil {
		c.t.Fatal(err)
	}
	if head[4] != kind || binary.LittleEndian.Uint32(head[5:]) != id {
		c.t.Fatalf("answer %d to %d: %s", head[4], binary.LittleEndian.Uint32(head[5:]), body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) refused(id uint32, code failure.Code) {
	c.t.Helper()
	var f Failed
	c.receive(typeError, id, &f)
	if f.Code != code || f.Message == "" {
		c.t.Fatalf("refused as %+v instead of %s", f, code)
	}
}

func (c *client) loaded() Loaded {
	c.t.Helper()
	c.send(TypeLoad, 1, []byte(keyFile(c.t)))
	var l Loaded
	c.receive(TypeLoad|answerBit, 1, &l)
	return l
}

func TestAWorkerLoadsProvesAndReportsItsStatus(t *testing.T) {
	c := start(t)
	var s Status
	c.send(TypeStatus, 7, nil)
	c.receive(TypeStatus|answerBit, 7, &s)
	if s.State != noKey || s.Key != nil {
		t.Fatalf("status %+v", s)
	}
	l := c.loaded()
	if l.Wires != statement.Wires || l.Public != 1 || !l.Development || l.WitnessBytes != len(statement.WTNS()) {
		t.Fatalf("loaded %+v", l)
	}
	for id := uint32(2); id < 5; id++ { // memory is reused
		c.send(TypeProve, id, statement.WTNS())
		var p Proved
		c.receive(TypeProve|answerBit, id, &p)
		if err := groth16.Verify(&c.w.prover.Key.Verifying, p.Proof, p.Public); err != nil {
			t.Fatal(err)
		}
	}
	c.send(TypeStatus, 8, nil)
	c.receive(TypeStatus|answerBit, 8, &s)
	if s.State != idle || s.Proofs != 3 || s.Failures != 0 || *s.Key != l {
		t.Fatalf("status %+v", s)
	}
	c.in.Close()
	if err := <-c.ended; err != nil {
		t.Fatal(err)
	}
}

func TestAWorkerContinuesAfterARefusal(t *testing.T) {
	c := start(t)
	c.send(TypeProve, 1, statement.WTNS())
	c.refused(1, failure.NoKey)
	c.send(TypeLoad, 2, []byte("/nowhere/at.zkey"))
	c.refused(2, failure.BadKey)
	c.send(TypeLoad, 3, nil)
	c.refused(3, failure.BadRequest)
	c.send(TypeLoad, 4, bytes.Repeat([]byte("x"), maxPath+1))
	c.refused(4, failure.BadRequest)
	c.send(9, 5, []byte("what"))
	c.refused(5, failure.BadRequest)
	c.send(TypeStatus, 6, []byte("body"))
	c.refused(6, failure.BadRequest)
	c.loaded()
	c.send(TypeProve, 7, statement.WTNS()[1:])
	c.refused(7, failure.BadWitness)
	c.send(TypeProve, 8, make([]byte, len(statement.WTNS())))
	c.refused(8, failure.BadWitness)
	wrong := *statement
	wrong.Witness = append([]iden3.Scalar{}, statement.Witness...)
	wrong.Witness[3] = iden3.Scalar{12345}
	c.send(TypeProve, 9, wrong.WTNS())
	c.refused(9, failure.Unsatisfied)
	c.send(TypeProve, 10, statement.WTNS())
	c.receive(TypeProve|answerBit, 10, &Proved{})
	var s Status
	c.send(TypeStatus, 11, nil)
	c.receive(TypeStatus|answerBit, 11, &s)
	if s.Proofs != 1 || s.Failures != 2 {
		t.Fatalf("status %+v", s)
	}
}

func TestABusyWorkerRefusesTasks(t *testing.T) {
	c := start(t)
	c.loaded()
	if err := c.w.claim(proving); err != nil {
		t.Fatal(err)
	}
	c.send(TypeProve, 2, statement.WTNS())
	c.refused(2, failure.Busy)
	c.send(TypeLoad, 3, []byte("x"))
	c.refused(3, failure.Busy)
	var s Status
	c.send(TypeStatus, 4, nil)
	c.receive(TypeStatus|answerBit, 4, &s)
	if s.State != proving {
		t.Fatalf("status %+v", s)
	}
	c.w.end()
	c.send(TypeProve, 5, statement.WTNS())
	c.receive(TypeProve|answerBit, 5, &Proved{})
}

// hold makes the next proof wait in its first step until the test closes resume. reached is closed when it waits.
func (c *client) hold() (reached, resume chan struct{}) {
	reached, resume = make(chan struct{}), make(chan struct{})
	step, first := c.w.prover.Step, true
	c.w.prover.Step = func() error {
		if first {
			first = false
			close(reached)
			<-resume
		}
		return step()
	}
	return reached, resume
}

func (c *client) status(id uint32) (s Status) {
	c.t.Helper()
	c.send(TypeStatus, id, nil)
	c.receive(TypeStatus|answerBit, id, &s)
	return s
}

func TestACancelledProofEndsAndTheKeyStays(t *testing.T) {
	c := start(t)
	l := c.loaded()
	reached, resume := c.hold()
	c.send(TypeProve, 2, statement.WTNS())
	<-reached
	c.send(TypeCancel, 2, nil)
	if s := c.status(3); s.State != proving { // the worker has read the cancel before it answers
		t.Fatalf("status %+v", s)
	}
	close(resume)
	c.refused(2, failure.Cancelled)
	c.send(TypeCancel, 2, nil) // the proof has ended, so this has no effect
	c.send(TypeProve, 4, statement.WTNS())
	c.receive(TypeProve|answerBit, 4, &Proved{})
	if s := c.status(5); s.Proofs != 1 || s.Failures != 0 || *s.Key != l {
		t.Fatalf("status %+v", s)
	}
}

func TestACancelOfAnotherProofHasNoEffect(t *testing.T) {
	c := start(t)
	c.loaded()
	reached, resume := c.hold()
	c.send(TypeProve, 2, statement.WTNS())
	<-reached
	c.send(TypeCancel, 1, nil)
	c.send(TypeCancel, 2, []byte("body"))
	c.refused(2, failure.BadRequest)
	c.status(3)
	close(resume)
	c.receive(TypeProve|answerBit, 2, &Proved{})
}

func TestAProofMakesProgress(t *testing.T) {
	c := start(t)
	c.loaded()
	before := c.status(2)
	if before.Path != string(cpu.Chosen()) {
		t.Fatalf("status %+v", before)
	}
	c.send(TypeProve, 3, statement.WTNS())
	c.receive(TypeProve|answerBit, 3, &Proved{})
	after := c.status(4)
	if after.Progress < before.Progress+10 {
		t.Fatalf("%d steps before, %d after a proof", before.Progress, after.Progress)
	}
	if again := c.status(5); again.Progress != after.Progress {
		t.Fatal("progress without work")
	}
}

func TestAWorkerWipesTheWitness(t *testing.T) {
	c := start(t)
	c.loaded()
	c.send(TypeProve, 2, statement.WTNS())
	c.receive(TypeProve|answerBit, 2, &Proved{})
	if err := c.w.begin(idle); err != nil { // waits until the memory is wiped
		t.Fatal(err)
	}
	for _, b := range c.w.witness {
		if b != 0 {
			t.Fatal("the frame's body is still there")
		}
	}
	for _, v := range c.w.prover.Witness {
		if v != (iden3.Scalar{}) {
			t.Fatal("the witness is still there")
		}
	}
}

// bufferRecorder is a reader that records the buffers that it has filled.
type bufferRecorder struct {
	io.Reader
	buffers [][]byte
}

func (r *bufferRecorder) Read(b []byte) (int, error) {
	r.buffers = append(r.buffers, b)
	return r.Reader.Read(b)
}

func TestAWorkerWipesEveryBufferOfAWitness(t *testing.T) {
	w := New(nil, io.Discard, groth16.Own)
	if err := w.Load(keyFile(t)); err != nil {
		t.Fatal(err)
	}
	var frames []byte
	for _, body := range [][]byte{statement.WTNS(), statement.WTNS()[1:]} { // proved, and refused
		frames = append(frames, frame(TypeProve, 2, body)...)
	}
	recorder := &bufferRecorder{Reader: bytes.NewReader(frames)}
	w.in = recorder
	if err := w.Run(); err != nil {
		t.Fatal(err)
	}
	for _, b := range recorder.buffers {
		if len(b) > lengthSize+headSize && slices.ContainsFunc(b, func(v byte) bool { return v != 0 }) {
			t.Fatalf("%d bytes are still there", len(b))
		}
	}
}

func TestAWorkerEndsOnAMalformedStream(t *testing.T) {
	for name, stream := range map[string][]byte{
		"a frame shorter than its head": {4, 0, 0, 0, TypeStatus, 0, 0, 0, 0},
		"half a head":                   {5, 0, 0},
		"half a body":                   frame(TypeLoad, 1, []byte("path"))[:11],
	} {
		t.Run(name, func(t *testing.T) {
			err := New(bytes.NewReader(stream), io.Discard, groth16.Own).Run()
			if failure.CodeOf(err) != failure.BadRequest {
				t.Fatal(err)
			}
		})
	}
	if err := New(bytes.NewReader(nil), io.Discard, groth16.Own).Run(); err != nil {
		t.Fatal(err)
	}
	if err := New(strings.NewReader(""), broken{}, groth16.Own).Run(); err != nil {
		t.Fatal(err)
	}
	if err := New(bytes.NewReader(frame(TypeStatus, 1, nil)), broken{}, groth16.Own).Run(); !errors.Is(err, io.ErrClosedPipe) {
		t.Fatal(err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestAFrameThatClaimsFourGigabytesTakesNoMemory(t *testing.T) {
	head := []byte{0xff, 0xff, 0xff, 0xff, TypeProve, 1, 0, 0, 0}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_ = New(bytes.NewReader(head), io.Discard, groth16.Own).Run()
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Fatalf("it took %d bytes", n)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(frame(TypeStatus, 1, nil))
	f.Add(append(frame(TypeLoad, 1, []byte("/nowhere")), frame(TypeProve, 2, statement.WTNS()[:64])...))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, TypeProve, 1, 0, 0, 0, 0})
	f.Add([]byte{4, 0, 0, 0, TypeStatus, 0, 0, 0, 0})
	f.Add(append(frame(TypeCancel, 1, nil), frame(TypeCancel, 2, []byte("body"))...))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var out bytes.Buffer
		_ = New(bytes.NewReader(stream), &out, groth16.Own).Run()
		for b := out.Bytes(); len(b) > 0; { // for any stream, the output has whole frames of JSON
			n := lengthSize + int(binary.LittleEndian.Uint32(b))
			if n > len(b) || !json.Valid(b[lengthSize+headSize:n]) {
				t.Fatalf("a broken answer: %q", b)
			}
			b = b[n:]
		}
	})
}
