// Y[r,:] = exp(X[r,:] - max) / sum exp(X[r,:] - max), float32, row by row; a row of -inf gives 0.
// Adds to 01: a warp a row; the lanes put together what they have seen by shuffles.
// Why faster: no shared memory and no barrier, so no warp waits for another.
// Bound by: loads of 4 bytes, two exponentials an element in the first pass, and the second read.
// Needs WARPS warps a block; any size, any alignment, no shared memory.
#include "layout.cuh"
#include "softmax.cuh"

template <int WARPS>
__global__ void softmax_warp(int R, int C, const float* __restrict__ X, int ldx,
                             float* __restrict__ Y, int ldy) {
  // Which row am I: one a warp.
  const int row = blockIdx.x * WARPS + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= R) return;
  const float* x = &X[at<false>(row, 0, ldx)];
  float* y = &Y[at<false>(row, 0, ldy)];

  // Main loop: see the row, then add up what the lanes have seen.
  Running seen = nothing_seen();
  for (int c = lane; c < C; c += 32) see(seen, x[c]);
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    const float largest = __shfl_xor_sync(0xffffffffu, seen.largest, distance);
    const float sum = __shfl_xor_sync(0xffffffffu, seen.sum, distance);
    seen = merged(seen, {largest, sum});
  }

  // Write-back.
  const float base = base_of(seen.largest);
  const float scale = scale_of(seen.sum);
  for (int c = lane; c < C; c += 32) y[c] = expf(x[c] - base) * scale;
}
