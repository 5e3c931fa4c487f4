// y[M] = (scales * (Wq - 8))[M,K] x[K]: 4-bit weights, a scale for 128 of a row; float32 sums.
// Adds to 01: a load moves 32 weights, and ROWS rows share what a lane has read and unpacked of x.
// Why faster: more bytes in flight, and x costs 1/ROWS as much; a weight costs three instructions.
// Bound by: device memory and the instructions that take weights apart, about equally.
// Needs WARPS warps a block, K in whole words; where K is not a multiple of 32 it goes by words.
#include "bfloat16.cuh"
#include "layout.cuh"
#include "warp.cuh"

// A weight as float without a conversion: its bits below those of 2^23, and 2^23 + 8 taken off.
__device__ __forceinline__ float weight(unsigned word, int i) {
  return __uint_as_float(word >> (4 * i) & 15u | 0x4b000000u) - 8388616.0f;
}

// Eight weights of a word with the eight elements of x they belong to.
__device__ __forceinline__ float product8(unsigned word, const float* factors) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += weight(word, i) * factors[i];
  return sum;
}

// Eight elements of x, in one access or one by one.
__device__ __forceinline__ void load8(float (&to)[8], const __nv_bfloat16* x, bool aligned) {
  if (aligned) {
    unpack8(to, *reinterpret_cast<const uint4*>(x));
  } else {
    for (int i = 0; i < 8; ++i) to[i] = __bfloat162float(x[i]);
  }
}

template <int WARPS, int ROWS>
__global__ void gemv_int4_vectorized(
    int M, int K, const unsigned* __restrict__ Wq, const __nv_bfloat16* __restrict__ scales,
    const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y) {
  // Which rows am I: ROWS a warp; a row past the end is computed as the last one, and not written.
  const int row0 = (blockIdx.x * WARPS + threadIdx.x / 32) * ROWS;
  const int lane = threadIdx.x % 32;
  if (row0 >= M) return;
  const int words = K / 8;
  const int groups = (K + 127) / 128;
  const bool aligned = reinterpret_cast<unsigned long long>(x) % 16 == 0;
  const int vectors = words % 4 == 0 ? words / 4 : 0;

  // Main loop: vectors of four words, which lie in one group; then single words.
  float sum[ROWS] = {};
  for (int v = lane; v < vectors; v += 32) {
    uint4 loaded[ROWS];
    float scale[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const int row = min(row0 + r, M - 1);
      loaded[r] = __ldcs(reinterpret_cast<const uint4*>(&Wq[at<false>(row, 4 * v, words)]));
      scale[r] = __bfloat162float(scales[at<false>(row, v / 4, groups)]);
    }
    float part[ROWS] = {};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      float factors[8];
      load8(factors, &x[32 * v + 8 * w], aligned);
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        const unsigned quad[4] = {loaded[r].x, loaded[r].y, loaded[r].z, loaded[r].w};
        part[r] += product8(quad[w], factors);
      }
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) sum[r] += part[r] * scale[r];
  }
  for (int w = 4 * vectors + lane; w < words; w += 32) {
    float factors[8];
    load8(factors, &x[8 * w], aligned);
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      const int row = min(row0 + r, M - 1);
      sum[r] += product8(Wq[at<false>(row, w, words)], factors) *
                __bfloat162float(scales[at<false>(row, w / 16, groups)]);
    }
  }

  // Write-back.
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const float total = warp_sum(sum[r]);
    if (lane == 0 && row0 + r < M) y[row0 + r] = __float2bfloat16_rn(total);
  }
}
