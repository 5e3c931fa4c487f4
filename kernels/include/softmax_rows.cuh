#pragma once

#include "softmax.cuh"
#include "vector.cuh"
#include "warp.cuh"

// The largest value, or the sum, over all threads of a row; `part` has room for one a warp.
template <bool SUM>
__device__ __forceinline__ float over_row(float value, float* part) {
  value = SUM ? warp_sum(value) : warp_max(value);
  const int warps = blockDim.x / 32;
  if (warps == 1) return value;
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x % 32 < warps ? part[threadIdx.x % 32] : (SUM ? 0.0f : minus_infinity());
  value = SUM ? warp_sum(value) : warp_max(value);
  __syncthreads();
  return value;
}

// A chunk of a row in registers, VECTORS float4 a thread; -inf past the end, which adds nothing.
template <int VECTORS>
__device__ __forceinline__ void load_chunk(float (&v)[VECTORS][4], const float* x, int first, int C,
                                           bool vectors) {
#pragma unroll
  for (int i = 0; i < VECTORS; ++i) {
    const int c = first + 4 * (i * blockDim.x + threadIdx.x);
    if (vectors && c < C) {
      copy4(v[i], &x[c]);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) v[i][j] = c + j < C ? x[c + j] : minus_infinity();
    }
  }
}

template <int VECTORS>
__device__ __forceinline__ void exponentials(float (&v)[VECTORS][4], float base) {
#pragma unroll
  for (int i = 0; i < VECTORS; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) v[i][j] = expf(v[i][j] - base);
  }
}

template <int VECTORS>
__device__ __forceinline__ void store_chunk(float* y, const float (&v)[VECTORS][4], float scale,
                                            int first, int C, bool vectors) {
#pragma unroll
  for (int i = 0; i < VECTORS; ++i) {
    const int c = first + 4 * (i * blockDim.x + threadIdx.x);
    if (vectors && c < C) {
      *reinterpret_cast<float4*>(&y[c]) =
          make_float4(v[i][0] * scale, v[i][1] * scale, v[i][2] * scale, v[i][3] * scale);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (c + j < C) y[c + j] = v[i][j] * scale;
      }
    }
  }
}

// y = softmax(x) of one row of C elements, by blockDim.x threads; y may be x. All threads of a
// block come here together; those of a row that does not exist write nothing.
template <int VECTORS>
__device__ __forceinline__ void softmax_row(const float* x, float* y, int C, bool vectors,
                                            bool exists) {
  // Shared memory, for rows of several warps.
  __shared__ float part[32];

  // Main loop: chunk by chunk; most rows are a single one.
  const int chunk = 4 * VECTORS * blockDim.x;
  alignas(16) float v[VECTORS][4];
  float largest = minus_infinity();
  float sum = 0.0f;
  for (int first = 0; first < C; first += chunk) {
    load_chunk<VECTORS>(v, x, first, C, vectors);
    float here = largest;
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) here = fmaxf(here, v[i][j]);
    }
    here = over_row<false>(here, part);
    const float base = base_of(here);
    exponentials<VECTORS>(v, base);
    sum *= expf(largest - base);
#pragma unroll
    for (int i = 0; i < VECTORS; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sum += v[i][j];
    }
    largest = here;
  }
  const float scale = scale_of(over_row<true>(sum, part));

  // Write-back; the exponentials of a single chunk are still there.
  if (!exists) return;
  for (int first = 0; first < C; first += chunk) {
    if (C > chunk) {
      load_chunk<VECTORS>(v, x, first, C, vectors);
      exponentials<VECTORS>(v, base_of(largest));
    }
    store_chunk<VECTORS>(y, v, scale, first, C, vectors);
  }
}
