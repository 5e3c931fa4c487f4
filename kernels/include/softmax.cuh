#pragma once

// Softmax of a row seen so far: its largest element, and the sum of exp(element - largest).
// After M. Milakov and N. Gimelshein, Online normalizer calculation for softmax (2018).
struct Running {
  float largest;
  float sum;
};

__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

// What is subtracted before exp: 0 where all so far is -inf, since (-inf) - (-inf) is NaN.
__device__ __forceinline__ float base_of(float largest) {
  return largest == minus_infinity() ? 0.0f : largest;
}

__device__ __forceinline__ Running nothing_seen() { return {minus_infinity(), 0.0f}; }

// One element more. A NaN does not change the largest element, but makes the sum NaN.
__device__ __forceinline__ void see(Running& seen, float x) {
  const float largest = fmaxf(seen.largest, x);
  const float base = base_of(largest);
  seen.sum = seen.sum * expf(seen.largest - base) + expf(x - base);
  seen.largest = largest;
}

// Two parts of one row.
__device__ __forceinline__ Running merged(Running a, Running b) {
  const float largest = fmaxf(a.largest, b.largest);
  const float base = base_of(largest);
  return {largest, a.sum * expf(a.largest - base) + b.sum * expf(b.largest - base)};
}

// The factor of every exp(element - base) of the row; a row of -inf alone becomes zeros.
__device__ __forceinline__ float scale_of(float sum) { return sum == 0.0f ? 0.0f : 1.0f / sum; }
