#pragma once

#include <cuda_bf16.h>

// Two neighbours of a 32-bit word of bfloat16, as float: a bfloat16 is the upper half of one.
__device__ __forceinline__ float low_half(unsigned word) { return __uint_as_float(word << 16); }
__device__ __forceinline__ float high_half(unsigned word) {
  return __uint_as_float(word & 0xffff0000u);
}

// Eight neighbours of one 16-byte load, as float.
__device__ __forceinline__ void unpack8(float (&to)[8], uint4 v) {
  to[0] = low_half(v.x);
  to[1] = high_half(v.x);
  to[2] = low_half(v.y);
  to[3] = high_half(v.y);
  to[4] = low_half(v.z);
  to[5] = high_half(v.z);
  to[6] = low_half(v.w);
  to[7] = high_half(v.w);
}
