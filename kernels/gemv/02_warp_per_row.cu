// y[M] = W[M,K] x[K], bfloat16 in and out, float32 sums; W row-major with leading dimension ldw.
// Adds to 01: a warp computes one element of y; its lanes add up what they found by shuffles.
// Why faster: the lanes walk side by side along the row, so a load falls into two sectors, not 32.
// Bound by: loads of 2 bytes. Too few bytes are in flight to cover the way to memory.
// Needs WARPS warps a block; any size, any alignment, no shared memory.
#include "bfloat16.cuh"
#include "layout.cuh"
#include "warp.cuh"

template <int WARPS>
__global__ void gemv_warp_per_row(
    int M, int K, const __nv_bfloat16* __restrict__ W, int ldw,
    const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y) {
  // Which row am I: one a warp.
  const int row = blockIdx.x * WARPS + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= M) return;

  // Main loop.
  float sum = 0.0f;
  for (int k = lane; k < K; k += 32) {
    sum += __bfloat162float(W[at<false>(row, k, ldw)]) * __bfloat162float(x[k]);
  }

  // Write-back.
  sum = warp_sum(sum);
  if (lane == 0) y[row] = __float2bfloat16_rn(sum);
}
