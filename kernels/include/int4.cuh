#pragma once

#include "bfloat16.cuh"

// Two weights as a pair of bfloat16, exactly: their bits below those of 128, and 136 taken off.
// The pair of `shift` s holds weights s / 4 and s / 4 + 4 of the word.
__device__ __forceinline__ unsigned weights2(unsigned word, int shift) {
  unsigned biased;  // word >> shift & 0x000f000f | 0x43004300; ptxas alone makes two of it
  asm("lop3.b32 %0, %1, %2, %3, 0xea;"
      : "=r"(biased)
      : "r"(word >> shift), "r"(0x000f000fu), "r"(0x43004300u));
  const __nv_bfloat162 one = __float2bfloat162_rn(1.0f);
  const __nv_bfloat162 off = __float2bfloat162_rn(-136.0f);
  const __nv_bfloat162 exact = __hfma2(reinterpret_cast<const __nv_bfloat162&>(biased), one, off);
  return reinterpret_cast<const unsigned&>(exact);
}

// c += A B for a 16 x 16 A of weights and a 16 x 8 B of x, of which one column counts.
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0,
                                         unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ unsigned word_of(uint4 v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// Eight products of a word and x, one by one.
__device__ __forceinline__ float products8(unsigned word, const __nv_bfloat16* x) {
  float sum = 0.0f;
  for (int i = 0; i < 8; ++i) {
    const int weight = static_cast<int>(word >> (4 * i) & 15u) - 8;
    sum += static_cast<float>(weight) * __bfloat162float(x[i]);
  }
  return sum;
}
