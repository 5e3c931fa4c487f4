// O = softmax(scale * Q K^T under a mask) V for every batch and head, float32, in three kernels.
// The first rung: tiles of both factors wait in shared memory, one element a thread.
// Why start here: K is read along its rows and transposed on the way, so that every load coalesces.
// Bound by: shared memory. Every FMA reads two elements from it.
// Needs TILE x TILE threads and D in whole tiles; any S. P holds the scores, then the weights.
#include "attention.cuh"

template <int TILE>
__global__ void attention_scores_shared_tile(
    int B, int H, int S, int D, float scale, int mask, const float* __restrict__ Q,
    const float* __restrict__ K, const float* __restrict__ Mask, float* __restrict__ P) {
  // Which tile am I: queries from m0, keys from n0, of one head.
  const Tile tile = which_tile<TILE>(S);
  const int m0 = tile.first_query;
  const int n0 = blockIdx.x * TILE;
  if (tile.head >= B * H || n0 >= keys_seen(m0 + TILE - 1, S, mask)) return;
  const float* queries = &Q[tile.head * S * D];
  const float* keys = &K[tile.head * S * D];
  const int thread_row = threadIdx.x / TILE;
  const int thread_column = threadIdx.x % TILE;

  // Shared memory; the extra column spreads the transposed stores of K over the banks.
  __shared__ float Qs[TILE][TILE];
  __shared__ float Ks[TILE][TILE + 1];

  // Main loop: load, sync, compute, sync.
  float acc = 0.0f;
  for (int d0 = 0; d0 < D; d0 += TILE) {
    const int d = d0 + thread_column;
    Qs[thread_row][thread_column] = element_or_zero<false>(queries, m0 + thread_row, d, S, D, D);
    Ks[thread_column][thread_row] = element_or_zero<false>(keys, n0 + thread_row, d, S, D, D);
    __syncthreads();
    for (int k = 0; k < TILE; ++k) {
      acc += Qs[thread_row][k] * Ks[k][thread_column];
    }
    __syncthreads();
  }

  // Write-back.
  const int i = m0 + thread_row;
  const int j = n0 + thread_column;
  if (i < S && j < S) {
    P[(tile.head * S + i) * S + j] = masked(scale * acc, Mask, i, j, S, mask);
  }
}

template <int VECTORS>
__global__ void __launch_bounds__(1024)
    attention_softmax_shared_tile(int B, int H, int S, int mask, float* P) {
  // Which row am I: one a block.
  softmax_weights<VECTORS>(P, S, mask);
}

template <int TILE>
__global__ void attention_values_shared_tile(
    int B, int H, int S, int D, int mask, const float* __restrict__ P,
    const float* __restrict__ V, float* __restrict__ O) {
  // Which tile am I: queries from m0, columns of V from n0, of one head.
  const Tile tile = which_tile<TILE>(S);
  const int m0 = tile.first_query;
  const int n0 = blockIdx.x * TILE;
  if (tile.head >= B * H) return;
  const float* weights = &P[tile.head * S * S];
  const float* values = &V[tile.head * S * D];
  const int thread_row = threadIdx.x / TILE;
  const int thread_column = threadIdx.x % TILE;
  const int i = m0 + thread_row;
  const int seen = i < S ? keys_seen(i, S, mask) : 0;

  // Shared memory.
  __shared__ float Ps[TILE][TILE];
  __shared__ float Vs[TILE][TILE];

  // Main loop: load, sync, compute, sync; no further than the last query of the tile looks.
  float acc = 0.0f;
  const int keys = keys_seen(min(m0 + TILE, S) - 1, S, mask);
  for (int k0 = 0; k0 < keys; k0 += TILE) {
    const int j = k0 + thread_column;
    const float value =
        element_or_zero<false>(values, k0 + thread_row, n0 + thread_column, S, D, D);
    Ps[thread_row][thread_column] = j < seen ? weights[at<false>(i, j, S)] : 0.0f;
    Vs[thread_row][thread_column] = value;
    if (__syncthreads_or(special(value))) {
      for (int k = 0; k < TILE; ++k) {
        acc = plus_weighted<true>(acc, Ps[thread_row][k], Vs[k][thread_column]);
      }
    } else {
      for (int k = 0; k < TILE; ++k) {
        acc = plus_weighted<false>(acc, Ps[thread_row][k], Vs[k][thread_column]);
      }
    }
    __syncthreads();
  }

  // Write-back.
  if (i < S) O[(tile.head * S + i) * D + n0 + thread_column] = acc;
}
