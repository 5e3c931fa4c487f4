// Y[M,N] = X[M,K] W[N,K]^T + b[N], float32; W as [out, in], all row-major with leading dimensions.
// Adds to 02: a thread owns TM x TN elements of Y in registers; X is transposed on its way too.
// Why faster: TM + TN shared reads feed TM * TN FMAs.
// Bound by: loads of 4 bytes, from device memory and from shared memory.
// Needs BM * BN / (TM * TN) threads; any size, any alignment.
#include "layout.cuh"

// Copies the thread's elements of a tile to shared memory, transposed; threads run along k.
template <int BK, int EXTENT, int THREADS, int PITCH>
__device__ __forceinline__ void load_tile(float (&tile)[BK][PITCH], const float* matrix, int row0,
                                          int k0, int rows, int K, int ld) {
#pragma unroll
  for (int i = threadIdx.x; i < BK * EXTENT; i += THREADS) {
    tile[i % BK][i / BK] = element_or_zero<false>(matrix, row0 + i / BK, k0 + i % BK, rows, K, ld);
  }
}

template <int BM, int BN, int BK, int TM, int TN>
__global__ void projection_block_tile_2d(
    int M, int N, int K, const float* __restrict__ X, int ldx, const float* __restrict__ W, int ldw,
    const float* __restrict__ b, float* __restrict__ Y, int ldy) {
  constexpr int THREADS = BM * BN / (TM * TN);

  // Which tile am I: rows from m0, columns from n0, TM x TN elements a thread.
  const int m0 = block_y() * BM;
  const int n0 = blockIdx.x * BN;
  const int thread_row = threadIdx.x / (BN / TN) * TM;
  const int thread_column = threadIdx.x % (BN / TN) * TN;

  // Shared memory; four extra columns spread the transposed stores over the banks.
  __shared__ float Xs[BK][BM + 4];
  __shared__ float Ws[BK][BN + 4];

  // Main loop: load, sync, compute, sync.
  float acc[TM][TN] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
    load_tile<BK, BM, THREADS>(Xs, X, m0, k0, M, K, ldx);
    load_tile<BK, BN, THREADS>(Ws, W, n0, k0, N, K, ldw);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      float x[TM];
      float w[TN];
      for (int i = 0; i < TM; ++i) x[i] = Xs[k][thread_row + i];
      for (int j = 0; j < TN; ++j) w[j] = Ws[k][thread_column + j];
      for (int i = 0; i < TM; ++i) {
        for (int j = 0; j < TN; ++j) {
          acc[i][j] += x[i] * w[j];
        }
      }
    }
    __syncthreads();
  }

  // Write-back, unrolled: acc stays in registers only if every index into it is known.
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; ++j) {
      const int row = m0 + thread_row + i;
      const int column = n0 + thread_column + j;
      if (row < M && column < N) Y[at<false>(row, column, ldy)] = acc[i][j] + b[column];
    }
  }
}
