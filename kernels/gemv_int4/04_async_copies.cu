// y[M] = (scales * (Wq - 8))[M,K] x[K]: 4-bit weights, a scale for 128 of a row; float32 sums.
// Adds to 03: asynchronous copies fetch weights and x, each warp STAGES - 1 chunks ahead of itself.
// Why faster: bytes on their way take no registers, and come in whole lines; nobody waits for x.
// Bound by: device memory, and not far behind the instructions that take weights apart.
// Needs sm_80; what lies behind the last whole 512 of K, or all if x is unaligned, goes by words.
#include "int4.cuh"
#include "layout.cuh"

// Eight elements of x as four pairs, element i with i + 4, as the weights of a word pair up.
__device__ __forceinline__ void pair_up(unsigned (&b)[4], uint4 v) {
  b[0] = __byte_perm(v.x, v.z, 0x5410);
  b[1] = __byte_perm(v.x, v.z, 0x7632);
  b[2] = __byte_perm(v.y, v.w, 0x5410);
  b[3] = __byte_perm(v.y, v.w, 0x7632);
}

// Where the 16 bytes number `unit` of a row lie in a chunk: odd rows have their halves of eight
// exchanged by fours, so that the two rows that eight lanes read share no bank.
__device__ __forceinline__ int weights_at(int row, int unit) {
  return 16 * row + (unit ^ row % 2 * 4);
}

// Where the 16 bytes number `unit` of x lie behind them: a quad reads every fourth.
__device__ __forceinline__ int x_at(int unit) { return 256 + (unit ^ unit / 8 % 2); }

__device__ __forceinline__ void copy16(uint4* to, const void* from) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}

// Begins to copy a chunk: 512 weights of 16 rows, half a warp a row, and the x they belong to.
__device__ __forceinline__ void begin_copy(uint4* place, const unsigned* Wq, const __nv_bfloat16* x,
                                           int row0, int M, int chunk, int words) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int row = 2 * i + lane / 16;
    const int word = 64 * chunk + 4 * (lane % 16);
    copy16(&place[weights_at(row, lane % 16)], &Wq[at<false>(min(row0 + row, M - 1), word, words)]);
  }
  copy16(&place[x_at(lane)], &x[512 * chunk + 8 * lane]);
  copy16(&place[x_at(lane + 32)], &x[512 * chunk + 8 * (lane + 32)]);
}

// Ends a group of copies, an empty one too: their number tells how many are still on their way.
__device__ __forceinline__ void end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until all but the last PENDING groups of this warp have arrived.
template <int PENDING>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
  __syncwarp();
}

// 16-byte vectors of a chunk: 16 rows of weights, and x.
constexpr int CHUNK = 16 * 16 + 64;

template <int WARPS, int STAGES>
__global__ void __launch_bounds__(32 * WARPS) gemv_int4_async_copies(
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
  const bool aligned = reinterpret_cast<unsigned long long>(x) % 16 == 0;
  const int chunks = aligned && words % 4 == 0 ? K / 512 : 0;
  const int rows[2] = {min(row0 + quad, M - 1), min(row0 + quad + 8, M - 1)};

  // Shared memory: a ring of chunks for each warp, which no other warp touches, and its sums.
  extern __shared__ uint4 rings[];
  uint4* ring = &rings[CHUNK * STAGES * warp];
  __shared__ float part[WARPS][16];

  // The first chunks; and the first scales, of which a lane has those of one group in four.
#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) {
    const int chunk = warp + s * WARPS;
    if (chunk < chunks) begin_copy(&ring[CHUNK * s], Wq, x, row0, M, chunk, words);
    end_group();
  }
  __nv_bfloat16 next[2] = {};
  if (warp < chunks) {
    for (int r = 0; r < 2; ++r) next[r] = scales[at<false>(rows[r], 4 * warp + place, groups)];
  }

  // Main loop over chunks of four groups: a lane takes 32 weights of each, and scales one of them.
  float sum[2] = {};
  int held = 0;
  for (int chunk = warp; chunk < chunks; chunk += WARPS) {
    // This chunk is there, and all lanes are through with the one before, whose place is free.
    wait_for_copies<STAGES - 2>();
    const int ahead = chunk + (STAGES - 1) * WARPS;
    const int freed = held == 0 ? STAGES - 1 : held - 1;
    if (ahead < chunks) begin_copy(&ring[CHUNK * freed], Wq, x, row0, M, ahead, words);
    end_group();

    const float scale[2] = {__bfloat162float(next[0]), __bfloat162float(next[1])};
    if (chunk + WARPS < chunks) {
      const int group = 4 * (chunk + WARPS) + place;
      for (int r = 0; r < 2; ++r) next[r] = scales[at<false>(rows[r], group, groups)];
    }
    const uint4* copied = &ring[CHUNK * held];
    float mine[2];
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      const uint4 up = copied[weights_at(quad, 4 * g + place)];
      const uint4 low = copied[weights_at(quad + 8, 4 * g + place)];
      // Two accumulators: a product need not wait for the one before.
      float c[2][4] = {};
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        unsigned b[4];
        pair_up(b, copied[x_at(16 * g + 4 * place + w)]);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const unsigned a[4] = {weights2(word_of(up, w), 8 * half),
                                 weights2(word_of(low, w), 8 * half),
                                 weights2(word_of(up, w), 8 * half + 4),
                                 weights2(word_of(low, w), 8 * half + 4)};
          multiply(c[half], a, b[2 * half], b[2 * half + 1]);
        }
      }
      // All columns of B are equal, so every lane of the quad holds the group's sums.
      if (place == g) {
        mine[0] = c[0][0] + c[1][0];
        mine[1] = c[0][2] + c[1][2];
      }
    }
    sum[0] += mine[0] * scale[0];
    sum[1] += mine[1] * scale[1];
    held = held == STAGES - 1 ? 0 : held + 1;
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
