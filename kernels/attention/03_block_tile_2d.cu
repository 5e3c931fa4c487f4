// O = softmax(scale * Q K^T under a mask) V for every batch and head, float32, in three kernels.
// Adds to 02: a thread owns TM x TN elements in registers; Q and the weights are transposed too.
// Why faster: TM + TN shared reads feed TM * TN FMAs.
// Bound by: loads of 4 bytes, from device memory and from shared memory.
// Needs BM * BN / (TM * TN) threads; D in whole VN; any S.
#include "attention.cuh"

// Copies a tile to shared memory, transposed: rows from row0, k from k0; threads run along k.
template <int BK, int EXTENT, int PITCH>
__device__ __forceinline__ void load_transposed(float (&tile)[BK][PITCH], const float* matrix,
                                                int row0, int k0, int rows, int columns) {
#pragma unroll 4
  for (int i = threadIdx.x; i < BK * EXTENT; i += blockDim.x) {
    const int row = row0 + i / BK;
    tile[i % BK][i / BK] = element_or_zero<false>(matrix, row, k0 + i % BK, rows, columns, columns);
  }
}

// One step of a main loop: TM x TN products for each of BK.
template <bool GUARD, int BK, int A, int C, int TM, int TN>
__device__ __forceinline__ void add_products(float (&acc)[TM][TN], const float (&As)[BK][A],
                                             const float (&Bs)[BK][C], int row, int column) {
#pragma unroll
  for (int k = 0; k < BK; ++k) {
    float a[TM];
    float b[TN];
    for (int i = 0; i < TM; ++i) a[i] = As[k][row + i];
    for (int j = 0; j < TN; ++j) b[j] = Bs[k][column + j];
    for (int i = 0; i < TM; ++i) {
      for (int j = 0; j < TN; ++j) acc[i][j] = plus_weighted<GUARD>(acc[i][j], a[i], b[j]);
    }
  }
}

template <int BM, int BN, int BK, int TM, int TN>
__global__ void attention_scores_block_tile_2d(
    int B, int H, int S, int D, float scale, int mask, const float* __restrict__ Q,
    const float* __restrict__ K, const float* __restrict__ Mask, float* __restrict__ P) {
  // Which tile am I: queries from m0, keys from n0, of one head; TM x TN scores a thread.
  const Tile tile = which_tile<BM>(S);
  const int m0 = tile.first_query;
  const int n0 = blockIdx.x * BN;
  if (tile.head >= B * H || n0 >= keys_seen(m0 + BM - 1, S, mask)) return;
  const float* queries = &Q[tile.head * S * D];
  const float* keys = &K[tile.head * S * D];
  const int thread_row = threadIdx.x / (BN / TN) * TM;
  const int thread_column = threadIdx.x % (BN / TN) * TN;

  // Shared memory; four extra columns spread the transposed stores over the banks.
  __shared__ float Qs[BK][BM + 4];
  __shared__ float Ks[BK][BN + 4];

  // Main loop: load, sync, compute, sync.
  float acc[TM][TN] = {};
  for (int d0 = 0; d0 < D; d0 += BK) {
    load_transposed<BK, BM>(Qs, queries, m0, d0, S, D);
    load_transposed<BK, BN>(Ks, keys, n0, d0, S, D);
    __syncthreads();
    add_products<false>(acc, Qs, Ks, thread_row, thread_column);
    __syncthreads();
  }

  // Write-back, unrolled: acc stays in registers only if every index into it is known.
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const int row = m0 + thread_row + i;
      const int column = n0 + thread_column + j;
      if (row < S && column < S) {
        P[(tile.head * S + row) * S + column] =
            masked(scale * acc[i][j], Mask, row, column, S, mask);
      }
    }
  }
}

template <int VECTORS>
__global__ void __launch_bounds__(1024)
    attention_softmax_block_tile_2d(int B, int H, int S, int mask, float* P) {
  // Which row am I: one a block.
  softmax_weights<VECTORS>(P, S, mask);
}

template <int BM, int VN, int BK, int TM, int VT>
__global__ void attention_values_block_tile_2d(
    int B, int H, int S, int D, int mask, const float* __restrict__ P,
    const float* __restrict__ V, float* __restrict__ O) {
  // Which tile am I: queries from m0, columns of V from n0, of one head; TM x VT elements a thread.
  const Tile tile = which_tile<BM>(S);
  const int m0 = tile.first_query;
  const int n0 = blockIdx.x * VN;
  if (tile.head >= B * H) return;
  const float* weights = &P[tile.head * S * S];
  const float* values = &V[tile.head * S * D];
  const int thread_row = threadIdx.x / (VN / VT) * TM;
  const int thread_column = threadIdx.x % (VN / VT) * VT;

  // Shared memory; four extra columns spread the transposed stores over the banks.
  __shared__ float Ps[BK][BM + 4];
  __shared__ float Vs[BK][VN];

  // Main loop: load, sync, compute, sync; no further than the last query of the tile looks.
  float acc[TM][VT] = {};
  const int keys = keys_seen(min(m0 + BM, S) - 1, S, mask);
  for (int k0 = 0; k0 < keys; k0 += BK) {
    for (int i = threadIdx.x; i < BK * BM; i += blockDim.x) {
      const int row = m0 + i / BK;
      const int key = k0 + i % BK;
      const int seen = row < S ? keys_seen(row, S, mask) : 0;
      Ps[i % BK][i / BK] = key < seen ? weights[at<false>(row, key, S)] : 0.0f;
    }
    bool guard = false;
    for (int i = threadIdx.x; i < BK * VN; i += blockDim.x) {
      const float value = element_or_zero<false>(values, k0 + i / VN, n0 + i % VN, S, D, D);
      Vs[i / VN][i % VN] = value;
      guard = guard || special(value);
    }
    if (__syncthreads_or(guard)) {
      add_products<true>(acc, Ps, Vs, thread_row, thread_column);
    } else {
      add_products<false>(acc, Ps, Vs, thread_row, thread_column);
    }
    __syncthreads();
  }

  // Write-back, unrolled: acc stays in registers only if every index into it is known.
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < VT; ++j) {
      const int row = m0 + thread_row + i;
      if (row < S) O[(tile.head * S + row) * D + n0 + thread_column + j] = acc[i][j];
    }
  }
}
