// Y[C,R] = X[R,C] transposed, float32, both row-major with leading dimensions of their own.
// Adds to 01: a tile waits in shared memory, so that loads and stores both run along rows.
// Why faster: a warp's store falls into 4 sectors, not 32.
// Bound by: bank conflicts. A column of the tile lies in one bank: 32 wavefronts for one read.
// Needs TILE x STEP threads a block; any size, any alignment.
#include "layout.cuh"

template <int TILE, int STEP>
__global__ void transpose_tiled(int R, int C, const float* __restrict__ X, int ldx,
                               float* __restrict__ Y, int ldy) {
  // Which tile am I: rows of X from row0, columns from column0, TILE / STEP elements a thread.
  const int row0 = block_y() * TILE;
  const int column0 = blockIdx.x * TILE;

  // Shared memory; the rows of a tile begin in the same bank.
  __shared__ float tile[TILE][TILE];

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
