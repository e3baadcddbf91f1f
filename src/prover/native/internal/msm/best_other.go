//go:build !amd64

package msm

var (
	bestG1 = newPortableG1
	bestG2 = newPortableG2
)
