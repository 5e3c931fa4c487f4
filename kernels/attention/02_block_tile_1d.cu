// O = softmax(scale * Q K^T under a mask) V for every batch and head, float32, in three kernels.
// Adds to 01: a thread computes TM elements of one column and keeps them in registers.
// Why faster: an element of K or V read once feeds TM FMAs; 1 + 1/TM shared reads each, not 2.
// Bound by: shared memory still. Each element of Q or of the weights is read for a single FMA.
// Needs BM * BN / TM threads, one element of each tile a thread, D in whole BN; any S.
#include "attention.cuh"

template <int BM, int BN, int BK, int TM>
__global__ void attention_scores_block_tile_1d(
    int B, int H, int S, int D, float scale, int mask, const float* __restrict__ Q,
    const float* __restrict__ K, const float* __restrict__ Mask, float* __restrict__ P) {
  constexpr int THREADS = BM * BN / TM;
  static_assert(BM * BK == THREADS && BK * BN == THREADS, "one element of each tile a thread");

  // Which tile am I: queries from m0, keys from n0, of one head; a column of TM scores a thread.
  const Tile tile = which_tile<BM>(S);
  const int m0 = tile.first_query;
  const int n0 = blockIdx.x * BN;
  if (tile.head >= B * H || n0 >= keys_seen(m0 + BM - 1, S, mask)) return;
  const float* queries = &Q[tile.head * S * D];
  const float* keys = &K[tile.head * S * D];
  const int thread_row = threadIdx.x / BN * TM;
  const int thread_column = threadIdx.x % BN;

  // Shared memory; four extra columns spread the transposed stores of K over the banks.
  __shared__ float Qs[BM][BK];
  __shared__ float Ks[BK][BN + 4];
  const int load_row = threadIdx.x / BK;
  const int load_d = threadIdx.x % BK;

  // Main loop: load, sync, compute, sync.
  float acc[TM] = {};
  for (int d0 = 0; d0 < D; d0 += BK) {
    Qs[load_row][load_d] =
        element_or_zero<false>(queries, m0 + load_row, d0 + load_d, S, D, D);
    Ks[load_d][load_row] = element_or_zero<false>(keys, n0 + load_row, d0 + load_d, S, D, D);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      const float key = Ks[k][thread_column];
      for (int i = 0; i < TM; ++i) {
        acc[i] += Qs[thread_row + i][k] * key;
      }
    }
    __syncthreads();
  }

  // Write-back.
  for (int i = 0; i < TM; ++i) {
    const int row = m0 + thread_row + i;
    const int column = n0 + thread_column;
    if (row < S && column < S) {
      P[(tile.head * S + row) * S + column] = masked(scale * acc[i], Mask, row, column, S, mask);
    }
  }
}

template <int VECTORS>
__global__ void __launch_bounds__(1024)
    attention_softmax_block_tile_1d(int B, int H, int S, int mask, float* P) {
  // Which row am I: one a block.
  softmax_weights<VECTORS>(P, S, mask);
}

// One step of the main loop of attention_values: TM weights of a row tile, one column of values.
template <bool GUARD, int BM, int BN, int BK, int TM>
__device__ __forceinline__ void add_values(float (&acc)[TM], const float (&Ps)[BM][BK],
                                           const float (&Vs)[BK][BN], int row, int column) {
#pragma unroll
  for (int k = 0; k < BK; ++k) {
    const float value = Vs[k][column];
    for (int i = 0; i < TM; ++i) acc[i] = plus_weighted<GUARD>(acc[i], Ps[row + i][k], value);
  }
}

template <int BM, int BN, int BK, int TM>
__global__ void attention_values_block_tile_1d(
    int B, int H, int S, int D, int mask, const float* __restrict__ P,
    const float* __restrict__ V, float* __restrict__ O) {
  constexpr int THREADS = BM * BN / TM;
  static_assert(BM * BK == THREADS && BK * BN == THREADS, "one element of each tile a thread");

  // Which tile am I: queries from m0, columns of V from n0, of one head.
  const Tile tile = which_tile<BM>(S);
  const int m0 = tile.first_query;
  const int n0 = blockIdx.x * BN;
  if (tile.head >= B * H) return;
  const float* weights = &P[tile.head * S * S];
  const float* values = &V[tile.head * S * D];
  const int thread_row = threadIdx.x / BN * TM;
  const int thread_column = threadIdx.x % BN;

  // Shared memory, and the element of each tile this thread loads.
  __shared__ float Ps[BM][BK];
  __shared__ float Vs[BK][BN];
  const int load_row = m0 + threadIdx.x / BK;
  const int load_key = threadIdx.x % BK;
  const int value_key = threadIdx.x / BN;
  const int seen = load_row < S ? keys_seen(load_row, S, mask) : 0;

  // Main loop: load, sync, compute, sync; no further than the last query of the tile looks.
  float acc[TM] = {};
  const int keys = keys_seen(min(m0 + BM, S) - 1, S, mask);
  for (int k0 = 0; k0 < keys; k0 += BK) {
    const int key = k0 + load_key;
    const float value =
        element_or_zero<false>(values, k0 + value_key, n0 + thread_column, S, D, D);
    Ps[threadIdx.x / BK][load_key] = key < seen ? weights[at<false>(load_row, key, S)] : 0.0f;
    Vs[value_key][thread_column] = value;
    if (__syncthreads_or(special(value))) {
      add_values<true>(acc, Ps, Vs, thread_row, thread_column);
    } else {
      add_values<false>(acc, Ps, Vs, thread_row, thread_column);
    }
    __syncthreads();
  }

  // Write-back.
  for (int i = 0; i < TM; ++i) {
    const int row = m0 + thread_row + i;
    if (row < S) O[(tile.head * S + row) * D + n0 + thread_column] = acc[i];
  }
}
