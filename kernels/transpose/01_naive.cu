// Y[C,R] = X[R,C] transposed, float32, both row-major with leading dimensions of their own.
// The first rung: one thread moves one element.
// Why start here: every later rung is judged against it. Loads run along the rows of X.
// Bound by: scattered stores. Neighbours in a warp write ldy apart: 32 sectors for 128 bytes.
// Needs nothing: any size, any alignment, no shared memory.
#include "layout.cuh"

__global__ void transpose_naive(int R, int C, const float* __restrict__ X, int ldx,
                                float* __restrict__ Y, int ldy) {
  // Which element am I.
  const int row = block_y() * blockDim.y + threadIdx.y;
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= R || column >= C) return;

  // The move.
  Y[at<false>(column, row, ldy)] = X[at<false>(row, column, ldx)];
}
