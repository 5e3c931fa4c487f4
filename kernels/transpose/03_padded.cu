// Y[C,R] = X[R,C] transposed, float32, both row-major with leading dimensions of their own.
// Adds to 02: one extra column in the shared tile, and nothing else.
// Why faster: the elements of a column lie in 32 different banks, so a read takes one wavefront.
// Bound by: device memory, and the number of loads on their way: each moves 4 bytes.
// Needs TILE x STEP threads a block; any size, any alignment.
#include "layout.cuh"

template <int TILE, int STEP>
__global__ void transpose_padded(int R, int C, const float* __restrict__ X, int ldx,
                                float* __restrict__ Y, int ldy) {
  // Which tile am I: rows of X from row0, columns from column0, TILE / STEP elements a thread.
  const int row0 = block_y() * TILE;
  const int column0 = blockIdx.x * TILE;

  // Shared memory; the extra column moves every row on by one bank.
  __shared__ float tile[TILE][TILE + 1];

  // Load along the rows of X.
#pragma unroll
  for (int i = threadIdx.y; i < TILE; i += STEP) {
    const int row = row0 + i;
    const int column = column0 + threadIdx.x;
    if (row < R && column < C) tile[i][threadIdx.x] = X[at<false>(row, column, ldx)];
  }
  __syncthreads();

  // Store along the rows of Y.
#pragma unroll
  for (int i = threadIdx.y; i < TILE; i += STEP) {
    const int row = column0 + i;
    const int column = row0 + threadIdx.x;
    if (row < C && column < R) Y[at<false>(row, column, ldy)] = tile[threadIdx.x][i];
  }
}
