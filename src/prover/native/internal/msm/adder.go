// Package msm sums points of BN254's G1 and G2: products of points by scalars, and chosen points.
//
// All of it uses one operation: a batch of independent affine additions (see adder). A batch shares one inversion, so
// that each addition costs six multiplications. With AVX-512, eight multiplications run at a time.
package msm

// Pair describes one addition: the sum of the sources P and Q is stored at Dst. P and Q are twice the source's index
// for the source itself, and one more than that for its negative.
type Pair struct{ P, Q, Dst uint32 }

// adder adds affine points in batches. Its sums are in its own form, which only adders of the same type read.
//
// A call takes its pairs batch by batch, in order. It reads all sources of a batch before it stores the batch's sums,
// so a sum may replace a source that no later pair needs.
type adder[P any] interface {
	// addKey sets dst[p.Dst] = ±key[p.P] ± key[p.Q] for each pair; key is in the library's form.
	addKey(dst, key []P, pairs []Pair)
	// add does the same with sources in the adder's form.
	add(dst, src []P, pairs []Pair)
	// lift converts a point from the library's form to the adder's. With opposite, it converts the point's opposite.
	lift(dst, src *P, opposite bool)
	// lower converts a point from the adder's form to the library's.
	lower(dst, src *P)
	// wipe clears the adder's working memory.
	wipe()
}

// batch is the greatest number of additions that share an inversion.
const batch = 1024
