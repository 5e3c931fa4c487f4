// O = softmax(scale * Q K^T under a mask) V for every batch and head, float32, in three kernels.
// Adds to 04: warp tiles, and the next tile is fetched to registers while this one is computed.
// Why faster: no bank conflicts, one barrier a step, and no warp waits for device memory before it.
// Bound by: the FMA pipe, and P, which crosses device memory four times.
// Needs BM * BN / (WM * WN) warps, D in whole VN; S not a multiple of 4 goes by elements.
#include "attention.cuh"

// Elements of a tile and of a sub-tile a thread owns along each axis.
constexpr int T = 4;

// Where a thread's elements lie: its warp's WM x WN in sub-tiles, each one T x T elements a lane.
template <int BN, int WM, int WN, int WNITER>
struct WarpTile {
  static constexpr int WMITER = WM * WN / (32 * T * T * WNITER);
  static constexpr int WSUBM = WM / WMITER;
  static constexpr int WSUBN = WN / WNITER;
  static constexpr int ROWS = WMITER * T;
  static constexpr int COLUMNS = WNITER * T;
  static_assert(WSUBM / T * (WSUBN / T) == 32, "a sub-tile is one thread tile a lane");

  static __device__ __forceinline__ int row(int i) {
    const int first = threadIdx.x / 32 / (BN / WN) * WM + threadIdx.x % 32 / (WSUBN / T) * T;
    return first + i / T * WSUBM + i % T;
  }
  static __device__ __forceinline__ int column(int j) {
    const int first = threadIdx.x / 32 % (BN / WN) * WN + threadIdx.x % 32 % (WSUBN / T) * T;
    return first + j / T * WSUBN + j % T;
  }
};

// A tile of a matrix whose rows run along k: fetched to registers, stored transposed. Eight lanes
// take four rows, two vectors each, so that the transposed stores spread over the banks.
template <int EXTENT, int BK, int THREADS>
struct RowTile {
  static constexpr int COUNT = EXTENT * BK / (4 * THREADS);
  static_assert(BK % 8 == 0 && EXTENT * BK % (4 * THREADS) == 0, "even shares of vectors");
  float4 next[COUNT];

  static __device__ __forceinline__ int row(int n) {
    return (n * THREADS + threadIdx.x) / 2 % EXTENT;
  }
  static __device__ __forceinline__ int k(int n) {
    const int i = n * THREADS + threadIdx.x;
    return i / (2 * EXTENT) * 8 + i % 2 * 4;
  }
  __device__ __forceinline__ void fetch(const float* matrix, int row0, int k0, int rows,
                                        int columns, bool vectors) {
#pragma unroll
    for (int n = 0; n < COUNT; ++n) {
      next[n] = vector_or_zero<false>(matrix, row0 + row(n), k0 + k(n), rows, columns, columns,
                                      vectors);
    }
  }
  template <int PITCH>
  __device__ __forceinline__ void store(float (&tile)[BK][PITCH]) const {
#pragma unroll
    for (int n = 0; n < COUNT; ++n) {
      tile[k(n) + 0][row(n)] = next[n].x;
      tile[k(n) + 1][row(n)] = next[n].y;
      tile[k(n) + 2][row(n)] = next[n].z;
      tile[k(n) + 3][row(n)] = next[n].w;
    }
  }
};

// One step of a main loop: a thread's products for each of BK.
template <bool GUARD, typename Where, int BK, int A, int C>
__device__ __forceinline__ void add_products(float (&acc)[Where::ROWS][Where::COLUMNS],
                                             const float (&As)[BK][A], const float (&Bs)[BK][C]) {
#pragma unroll
  for (int k = 0; k < BK; ++k) {
    alignas(16) float a[Where::ROWS];
    alignas(16) float b[Where::COLUMNS];
    for (int i = 0; i < Where::ROWS; i += T) copy4(&a[i], &As[k][Where::row(i)]);
    for (int j = 0; j < Where::COLUMNS; j += T) copy4(&b[j], &Bs[k][Where::column(j)]);
    for (int i = 0; i < Where::ROWS; ++i) {
      for (int j = 0; j < Where::COLUMNS; ++j) {
        acc[i][j] = plus_weighted<GUARD>(acc[i][j], a[i], b[j]);
      }
    }
  }
}

template <int BM, int BN, int BK, int WM, int WN, int WNITER>
__global__ void attention_scores_double_buffer(
    int B, int H, int S, int D, float scale, int mask, const float* __restrict__ Q,
    const float* __restrict__ K, const float* __restrict__ Mask, float* __restrict__ P) {
  constexpr int THREADS = BM / WM * (BN / WN) * 32;
  using Where = WarpTile<BN, WM, WN, WNITER>;

  // Which tile am I: queries from m0, keys from n0, of one head.
  const Tile tile = which_tile<BM>(S);
  const int m0 = tile.first_query;
  const int n0 = blockIdx.x * BN;
  if (tile.head >= B * H || n0 >= keys_seen(m0 + BM - 1, S, mask)) return;
  const float* queries = &Q[tile.head * S * D];
  const float* keys = &K[tile.head * S * D];

  // Shared memory; four extra columns spread the transposed stores, and keep rows aligned.
  __shared__ alignas(16) float Qs[2][BK][BM + 4];
  __shared__ alignas(16) float Ks[2][BK][BN + 4];

  // Main loop: fetch, compute, store, sync.
  float acc[Where::ROWS][Where::COLUMNS] = {};
  RowTile<BM, BK, THREADS> q;
  RowTile<BN, BK, THREADS> k;
  q.fetch(queries, m0, 0, S, D, true);
  k.fetch(keys, n0, 0, S, D, true);
  q.store(Qs[0]);
  k.store(Ks[0]);
  __syncthreads();
  int now = 0;
  for (int d0 = 0; d0 < D; d0 += BK) {
    const bool more = d0 + BK < D;
    if (more) {
      q.fetch(queries, m0, d0 + BK, S, D, true);
      k.fetch(keys, n0, d0 + BK, S, D, true);
    }
    add_products<false, Where>(acc, Qs[now], Ks[now]);
    now ^= 1;
    if (more) {
      q.store(Qs[now]);
      k.store(Ks[now]);
      __syncthreads();
    }
  }

  // Write-back, unrolled: acc stays in registers only if every index into it is known.
#pragma unroll
  for (int i = 0; i < Where::ROWS; ++i) {
#pragma unroll
    for (int j = 0; j < Where::COLUMNS; j += T) {
      const int row = m0 + Where::row(i);
      const int column = n0 + Where::column(j);
      if (row >= S) continue;
      float scores[T];
      for (int e = 0; e < T; ++e) {
        const float score = scale * acc[i][j + e];
        scores[e] = column + e < S ? masked(score, Mask, row, column + e, S, mask) : 0.0f;
      }
      update4(&P[(tile.head * S + row) * S + column], S - column, S % 4 == 0, 1.0f, scores, 0.0f);
    }
  }
}

template <int VECTORS>
__global__ void __launch_bounds__(1024)
    attention_softmax_double_buffer(int B, int H, int S, int mask, float* P) {
  // Which row am I: one a block.
  softmax_weights<VECTORS>(P, S, mask);
}

// A tile of V: its rows are keys, so vectors go to shared memory as they come.
template <int BK, int EXTENT, int THREADS>
struct ValueTile {
  static constexpr int COUNT = BK * EXTENT / (4 * THREADS);
  static_assert(BK * EXTENT % (4 * THREADS) == 0, "even shares of vectors");
  float4 next[COUNT];

  __device__ __forceinline__ void fetch(const float* values, int k0, int n0, int S, int D) {
#pragma unroll
    for (int n = 0; n < COUNT; ++n) {
      const int i = n * THREADS + threadIdx.x;
      const int column = n0 + i % (EXTENT / 4) * 4;
      next[n] = vector_or_zero<false>(values, k0 + i / (EXTENT / 4), column, S, D, D, true);
    }
  }
  // Returns whether one of the thread's values is NaN or infinite.
  __device__ __forceinline__ bool store(float (&tile)[BK][EXTENT]) const {
    bool guard = false;
#pragma unroll
    for (int n = 0; n < COUNT; ++n) {
      const int i = n * THREADS + threadIdx.x;
      *reinterpret_cast<float4*>(&tile[i / (EXTENT / 4)][i % (EXTENT / 4) * 4]) = next[n];
      guard = guard || special(next[n].x) || special(next[n].y) || special(next[n].z) ||
              special(next[n].w);
    }
    return guard;
  }
};

// Zeros in a tile of weights whose keys a causal mask hides; their memory holds no weight.
template <int EXTENT, int BK, int THREADS>
__device__ __forceinline__ void hide(RowTile<EXTENT, BK, THREADS>& weights, int m0, int k0, int S,
                                     int mask) {
  if (mask != CAUSAL || k0 + BK <= m0 + 1) return;
#pragma unroll
  for (int n = 0; n < weights.COUNT; ++n) {
    const int seen = keys_seen(m0 + weights.row(n), S, mask) - k0 - weights.k(n);
    float4& v = weights.next[n];
    v = make_float4(seen > 0 ? v.x : 0.0f, seen > 1 ? v.y : 0.0f, seen > 2 ? v.z : 0.0f,
                    seen > 3 ? v.w : 0.0f);
  }
}

template <int VM, int VN, int VK, int VWM, int VWN, int VITER>
__global__ void attention_values_double_buffer(
    int B, int H, int S, int D, int mask, const float* __restrict__ P,
    const float* __restrict__ V, float* __restrict__ O) {
  constexpr int THREADS = VM / VWM * (VN / VWN) * 32;
  using Where = WarpTile<VN, VWM, VWN, VITER>;

  // Which tile am I: queries from m0, columns of V from n0, of one head.
  const Tile tile = which_tile<VM>(S);
  const int m0 = tile.first_query;
  const int n0 = blockIdx.x * VN;
  if (tile.head >= B * H) return;
  const float* weights = &P[tile.head * S * S];
  const float* values = &V[tile.head * S * D];

  // Shared memory; four extra columns spread the transposed stores, and keep rows aligned.
  __shared__ alignas(16) float Ps[2][VK][VM + 4];
  __shared__ alignas(16) float Vs[2][VK][VN];

  // Main loop: fetch, compute, store, sync; no further than the last query of the tile looks.
  alignas(16) float acc[Where::ROWS][Where::COLUMNS] = {};
  RowTile<VM, VK, THREADS> p;
  ValueTile<VK, VN, THREADS> v;
  const int keys = keys_seen(min(m0 + VM, S) - 1, S, mask);
  p.fetch(weights, m0, 0, S, S, S % 4 == 0);
  hide(p, m0, 0, S, mask);
  v.fetch(values, 0, n0, S, D);
  p.store(Ps[0]);
  bool guard = __syncthreads_or(v.store(Vs[0]));
  int now = 0;
  for (int k0 = 0; k0 < keys; k0 += VK) {
    const bool more = k0 + VK < keys;
    if (more) {
      p.fetch(weights, m0, k0 + VK, S, S, S % 4 == 0);
      hide(p, m0, k0 + VK, S, mask);
      v.fetch(values, k0 + VK, n0, S, D);
    }
    if (guard) {
      add_products<true, Where>(acc, Ps[now], Vs[now]);
    } else {
      add_products<false, Where>(acc, Ps[now], Vs[now]);
    }
    now ^= 1;
    if (more) {
      p.store(Ps[now]);
      guard = __syncthreads_or(v.store(Vs[now]));
    }
  }

  // Write-back, unrolled: acc stays in registers only if every index into it is known.
#pragma unroll
  for (int i = 0; i < Where::ROWS; ++i) {
#pragma unroll
    for (int j = 0; j < Where::COLUMNS; j += T) {
      const int row = m0 + Where::row(i);
      float* to = &O[(tile.head * S + row) * D + n0 + Where::column(j)];
      if (row < S) copy4(to, &acc[i][j]);
    }
  }
}
