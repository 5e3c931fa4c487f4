// y[M] = (scales * (Wq - 8))[M,K] x[K]: 4-bit weights, a scale for 128 of a row; float32 sums.
// Adds to 02: tensor cores multiply, 16 rows a block; its warps share out K, four groups at a time.
// Why faster: a weight stays half of a bfloat16 pair: two instructions in place of four.
// Bound by: device memory, and the bytes of it that a warp can have on their way.
// Needs sm_80; what of K lies behind the last whole 512 goes by words. Any alignment of x.
#include "int4.cuh"
#include "layout.cuh"

// Eight elements of x as four pairs, element i with i + 4, as the weights of a word pair up.
__device__ __forceinline__ void load_pairs(unsigned (&b)[4], const __nv_bfloat16* x, bool aligned) {
  unsigned f[4];
  if (aligned) {
    const uint4 v = *reinterpret_cast<const uint4*>(x);
    f[0] = v.x;
    f[1] = v.y;
    f[2] = v.z;
    f[3] = v.w;
  } else {
    const unsigned short* bits = reinterpret_cast<const unsigned short*>(x);
    for (int i = 0; i < 4; ++i) {
      f[i] = bits[2 * i] | static_cast<unsigned>(bits[2 * i + 1]) << 16;
    }
  }
  b[0] = __byte_perm(f[0], f[2], 0x5410);
  b[1] = __byte_perm(f[0], f[2], 0x7632);
  b[2] = __byte_perm(f[1], f[3], 0x5410);
  b[3] = __byte_perm(f[1], f[3], 0x7632);
}

template <int WARPS>
__global__ void __launch_bounds__(32 * WARPS) gemv_int4_tensor_core(
    int M, int K, const unsigned* __restrict__ Wq, const __nv_bfloat16* __restrict__ scales,
    const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y) {
  // Which rows am I: 16 a block, two of them a quad of lanes, eight apart. A row past the end is
  // computed as the last one, and not written.
  const int row0 = blockIdx.x * 16;
  const int warp = threadIdx.x / 32;
  const int quad = threadIdx.x % 32 / 4;
  const int place = threadIdx.x % 4;
  const int words = K / 8;
  const int groups = (K + 127) / 128;
  const int chunks = words % 4 == 0 ? K / 512 : 0;
  const int rows[2] = {min(row0 + quad, M - 1), min(row0 + quad + 8, M - 1)};
  const bool aligned = reinterpret_cast<unsigned long long>(x) % 16 == 0;

  // Shared memory: what each warp found.
  __shared__ float part[WARPS][16];

  // Main loop over chunks of four groups: a lane takes 32 weights of each, and scales one of them.
  float sum[2] = {};
  for (int chunk = warp; chunk < chunks; chunk += WARPS) {
    uint4 loaded[4][2];
    float scale[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int g = 0; g < 4; ++g) {
        const int word = 64 * chunk + 16 * g + 4 * place;
        loaded[g][r] = __ldcs(reinterpret_cast<const uint4*>(&Wq[at<false>(rows[r], word, words)]));
      }
      scale[r] = __bfloat162float(scales[at<false>(rows[r], 4 * chunk + place, groups)]);
    }
    float mine[2];
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      float c[4] = {};
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        unsigned b[4];
        load_pairs(b, &x[512 * chunk + 128 * g + 32 * place + 8 * w], aligned);
        const unsigned up = word_of(loaded[g][0], w);
        const unsigned low = word_of(loaded[g][1], w);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const unsigned a[4] = {weights2(up, 8 * half), weights2(low, 8 * half),
                                 weights2(up, 8 * half + 4), weights2(low, 8 * half + 4)};
          multiply(c, a, b[2 * half], b[2 * half + 1]);
        }
      }
      // All columns of B are equal, so every lane of the quad holds the group's sums.
      if (place == g) {
        mine[0] = c[0];
        mine[1] = c[2];
      }
    }
    sum[0] += mine[0] * scale[0];
    sum[1] += mine[1] * scale[1];
  }

  // The rest of the rows, word by word; then the quad of a row adds up its four parts.
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    for (int w = 64 * chunks + 4 * warp + place; w < words; w += 4 * WARPS) {
      sum[r] += products8(Wq[at<false>(rows[r], w, words)], &x[8 * w]) *
                __bfloat162float(scales[at<false>(rows[r], w / 16, groups)]);
    }
    sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
    sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
  }

  // Write-back.
  if (place == 0) {
    part[warp][quad] = sum[0];
    part[warp][quad + 8] = sum[1];
  }
  __syncthreads();
  if (threadIdx.x < 16 && row0 + threadIdx.x < M) {
    float total = 0.0f;
    for (int w = 0; w < WARPS; ++w) total += part[w][threadIdx.x];
    y[row0 + threadIdx.x] = __float2bfloat16_rn(total);
  }
}
