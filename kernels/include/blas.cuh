#pragma once

// How far to sum over k: alpha == 0 means, as in BLAS, that A and B are not read.
__device__ __forceinline__ int summed_extent(float alpha, int K) {
  return alpha == 0.0f ? 0 : K;
}

// One element of C = alpha * product + beta * C; beta == 0 means, as in BLAS, that C is not read.
__device__ __forceinline__ void update(float* c, float alpha, float product, float beta) {
  const float old = beta == 0.0f ? 0.0f : *c;
  *c = alpha * product + beta * old;
}
