// Y[r,:] = exp(X[r,:] - max) / sum exp(X[r,:] - max), float32, row by row; a row of -inf gives 0.
// Adds to 02: the row stays in registers, VECTORS float4 a thread; long rows get several warps.
// Why faster: X crosses device memory once, in 16-byte loads that are all on their way together.
// Bound by: device memory; rows beyond VECTORS * 4096 elements are read again, chunk by chunk.
// Needs blocks of (threads a row, rows); unaligned rows go by elements. Short rows need no barrier.
#include "layout.cuh"
#include "softmax_rows.cuh"

template <int VECTORS>
__global__ void __launch_bounds__(1024)
    softmax_registers(int R, int C, const float* __restrict__ X, int ldx, float* __restrict__ Y,
                      int ldy) {
  // Which row am I: blockDim.x threads a row. A row past the end is computed as the last one.
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  const int inside = min(row, R - 1);
  const bool vectors = made_of_vectors(X, C, ldx) && made_of_vectors(Y, C, ldy);

  // Main loop and write-back.
  softmax_row<VECTORS>(&X[at<false>(inside, 0, ldx)], &Y[at<false>(inside, 0, ldy)], C, vectors,
                       row < R);
}
