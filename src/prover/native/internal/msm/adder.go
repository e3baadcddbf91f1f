// Package msm sums points: products of points by scalars, and sums of chosen points, over BN254's G1 and G2.
//
// Everything rests on one operation, many independent affine additions at once (adder): they share one inversion,
// which leaves each six multiplications, and these run eight at a time where the processor can.
package msm

// Pair asks for one addition: source P plus source Q, to be stored at Dst. P and Q are a source's index times two,
// plus one where the source's opposite is meant.
type Pair struct{ P, Q, Dst uint32 }

// adder adds affine points in batches. Points made by it are in its own form, which only it reads.
//
// Within one call all of a batch's sources are read before its results are stored, and batches run in order: a
// result may replace a source that no later pair needs.
type adder[P any] interface {
	// addKey sets dst[p.Dst] = ±key[p.P] ± key[p.Q] for each pair; key is in the library's form.
	addKey(dst, key []P, pairs []Pair)
	// add does the same with sources in the adder's form.
	add(dst, src []P, pairs []Pair)
	// lift turns a point (or its opposite) in the library's form into the adder's.
	lift(dst, src *P, opposite bool)
	// lower turns a point in the adder's form into the library's.
	lower(dst, src *P)
	// wipe clears what the adder remembers.
	wipe()
}

// batch is how many additions share an inversion.
const batch = 1024
