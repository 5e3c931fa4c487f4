// y[M] = (scales * (Wq - 8))[M,K] x[K]: 4-bit weights, a scale for 128 of a row; float32 sums.
// The first rung: a warp computes one element of y; a lane takes words of eight weights apart.
// Why start here: a quarter of bfloat16's bytes, if taking them apart costs less than moving them.
// Bound by: loads of 4 bytes, and x, which is read again for every row.
// Needs WARPS warps a block, K in whole words of eight weights; any alignment of x.
#include "bfloat16.cuh"
#include "layout.cuh"
#include "warp.cuh"

template <int WARPS>
__global__ void gemv_int4_warp_per_row(
    int M, int K, const unsigned* __restrict__ Wq, const __nv_bfloat16* __restrict__ scales,
    const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y) {
  // Which row am I: one a warp.
  const int row = blockIdx.x * WARPS + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= M) return;
  const int words = K / 8;
  const int groups = (K + 127) / 128;

  // Main loop: element k of a word lies in its bits 4k to 4k + 3, and stands for itself minus 8.
  float sum = 0.0f;
  for (int w = lane; w < words; w += 32) {
    const unsigned word = Wq[at<false>(row, w, words)];
    float part = 0.0f;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int weight = static_cast<int>(word >> (4 * i) & 15u) - 8;
      part += static_cast<float>(weight) * __bfloat162float(x[8 * w + i]);
    }
    sum += part * __bfloat162float(scales[at<false>(row, w / 16, groups)]);
  }

  // Write-back.
  sum = warp_sum(sum);
  if (lane == 0) y[row] = __float2bfloat16_rn(sum);
}
