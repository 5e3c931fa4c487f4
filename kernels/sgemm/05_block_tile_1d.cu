// C[M,N] = alpha * A[M,K] B[K,N] + beta * C, float32; A and B row- or column-major, C row-major.
// Adds to 04: a thread computes TM elements of one column of C and keeps them in registers.
// Why faster: an element of B read once feeds TM FMAs; shared reads per FMA: from 2 to 1 + 1/TM.
// Bound by: shared memory still. Each element of A is read for a single FMA.
// Needs BM * BN / TM threads, one element of each tile a thread. After S. Boehm (2022), kernel 4.
#include "blas.cuh"
#include "layout.cuh"

template <int BM, int BN, int BK, int TM, bool A_COL, bool B_COL>
__global__ void sgemm_block_tile_1d(
    int M, int N, int K, float alpha, const float* __restrict__ A, int lda,
    const float* __restrict__ B, int ldb, float beta, float* __restrict__ C, int ldc) {
  constexpr int THREADS = BM * BN / TM;
  static_assert(BM * BK == THREADS && BK * BN == THREADS, "one element of each tile a thread");

  // Which tile am I: rows from m0, columns from n0, a column of TM elements a thread.
  const int m0 = block_y() * BM;
  const int n0 = blockIdx.x * BN;
  const int thread_row = threadIdx.x / BN * TM;
  const int thread_column = threadIdx.x % BN;

  // Shared memory; extra columns where loads run across rows, to spread them over the banks.
  __shared__ float As[BM][BK + A_COL];
  __shared__ float Bs[BK][BN + B_COL * 32 / BK];

  // The element of each tile this thread loads: threads run along the axis contiguous in memory.
  const int a_row = A_COL ? threadIdx.x % BM : threadIdx.x / BK;
  const int a_k = A_COL ? threadIdx.x / BM : threadIdx.x % BK;
  const int b_k = B_COL ? threadIdx.x % BK : threadIdx.x / BN;
  const int b_column = B_COL ? threadIdx.x / BK : threadIdx.x % BN;

  // Main loop: load, sync, compute, sync.
  K = summed_extent(alpha, K);
  float acc[TM] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
    As[a_row][a_k] = element_or_zero<A_COL>(A, m0 + a_row, k0 + a_k, M, K, lda);
    Bs[b_k][b_column] = element_or_zero<B_COL>(B, k0 + b_k, n0 + b_column, K, N, ldb);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      const float b = Bs[k][thread_column];
      for (int i = 0; i < TM; ++i) {
        acc[i] += As[thread_row + i][k] * b;
      }
    }
    __syncthreads();
  }

  // Write-back.
  for (int i = 0; i < TM; ++i) {
    const int row = m0 + thread_row + i;
    const int column = n0 + thread_column;
    if (row < M && column < N) {
      update(&C[at<false>(row, column, ldc)], alpha, acc[i], beta);
    }
  }
}
