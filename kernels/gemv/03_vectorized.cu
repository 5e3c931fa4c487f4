// y[M] = W[M,K] x[K], bfloat16 in and out, float32 sums; W row-major with leading dimension ldw.
// Adds to 02: a load moves eight weights, UNROLL of them are on their way before the first is used.
// Why faster: 16 bytes a lane and load keep enough bytes in flight to stream W at full bandwidth.
// Bound by: device memory. W passes once and is marked as such, so that x stays in the cache.
// Needs WARPS warps a block; unaligned rows go by elements, and so does the rest of any row.
#include "bfloat16.cuh"
#include "layout.cuh"
#include "warp.cuh"

// The part of a row that is made of vectors, eight products each.
__device__ __forceinline__ float product8(uint4 weights, uint4 factors) {
  float w[8];
  float v[8];
  unpack8(w, weights);
  unpack8(v, factors);
  float sum = 0.0f;
  for (int i = 0; i < 8; ++i) sum += w[i] * v[i];
  return sum;
}

template <int WARPS, int UNROLL>
__global__ void gemv_vectorized(
    int M, int K, const __nv_bfloat16* __restrict__ W, int ldw,
    const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y) {
  // Which row am I: one a warp.
  const int row = blockIdx.x * WARPS + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= M) return;
  const __nv_bfloat16* weights = &W[at<false>(row, 0, ldw)];
  const bool aligned = reinterpret_cast<unsigned long long>(W) % 16 == 0 && ldw % 8 == 0 &&
                       reinterpret_cast<unsigned long long>(x) % 16 == 0;
  const int vectors = aligned ? K / 8 : 0;
  const uint4* w8 = reinterpret_cast<const uint4*>(weights);
  const uint4* x8 = reinterpret_cast<const uint4*>(x);

  // Main loop: UNROLL loads, then their products; then single vectors; then elements.
  float sum = 0.0f;
  int v = lane;
  for (; v + 32 * (UNROLL - 1) < vectors; v += 32 * UNROLL) {
    uint4 loaded[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) loaded[i] = __ldcs(&w8[v + 32 * i]);
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) sum += product8(loaded[i], x8[v + 32 * i]);
  }
  for (; v < vectors; v += 32) sum += product8(__ldcs(&w8[v]), x8[v]);
  for (int k = 8 * vectors + lane; k < K; k += 32) {
    sum += __bfloat162float(weights[k]) * __bfloat162float(x[k]);
  }

  // Write-back.
  sum = warp_sum(sum);
  if (lane == 0) y[row] = __float2bfloat16_rn(sum);
}
