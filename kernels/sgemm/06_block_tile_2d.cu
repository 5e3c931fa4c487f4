// C[M,N] = alpha * A[M,K] B[K,N] + beta * C, float32; A and B row- or column-major, C row-major.
// Adds to 05: a thread computes TM x TN of C, an outer product. Rewrites the loads: 4 a thread.
// Why faster: TM + TN shared reads feed TM * TN FMAs; reads per FMA: from 1 + 1/TM to 1/TM + 1/TN.
// Bound by: load instructions of one element each, and bank conflicts (4-way on B, 2-way on A).
// Needs BM * BN / (TM * TN) threads; any size, any alignment. After S. Boehm (2022), kernel 5.
#include "blas.cuh"
#include "layout.cuh"

template <int BM, int BN, int BK, int TM, int TN, bool A_COL, bool B_COL>
__global__ void sgemm_block_tile_2d(
    int M, int N, int K, float alpha, const float* __restrict__ A, int lda,
    const float* __restrict__ B, int ldb, float beta, float* __restrict__ C, int ldc) {
  constexpr int THREADS = BM * BN / (TM * TN);
  static_assert(BM * BK % THREADS == 0 && BK * BN % THREADS == 0, "even shares");

  // Which tile am I: rows from m0, columns from n0, TM x TN elements a thread.
  const int m0 = block_y() * BM;
  const int n0 = blockIdx.x * BN;
  const int thread_row = threadIdx.x / (BN / TN) * TM;
  const int thread_column = threadIdx.x % (BN / TN) * TN;

  // Shared memory; extra columns where loads run across rows, to spread them over the banks.
  __shared__ float As[BM][BK + A_COL];
  __shared__ float Bs[BK][BN + B_COL * 32 / BK];

  // Main loop: load, sync, compute, sync.
  K = summed_extent(alpha, K);
  float acc[TM][TN] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
#pragma unroll
    for (int first = 0; first < BM * BK; first += THREADS) {
      const int i = first + threadIdx.x;
      const int row = A_COL ? i % BM : i / BK;
      const int k = A_COL ? i / BM : i % BK;
      As[row][k] = element_or_zero<A_COL>(A, m0 + row, k0 + k, M, K, lda);
    }
#pragma unroll
    for (int first = 0; first < BK * BN; first += THREADS) {
      const int i = first + threadIdx.x;
      const int k = B_COL ? i % BK : i / BN;
      const int column = B_COL ? i / BK : i % BN;
      Bs[k][column] = element_or_zero<B_COL>(B, k0 + k, n0 + column, K, N, ldb);
    }
    __syncthreads();
    for (int k = 0; k < BK; ++k) {
      float a[TM];
      float b[TN];
      for (int i = 0; i < TM; ++i) a[i] = As[thread_row + i][k];
      for (int j = 0; j < TN; ++j) b[j] = Bs[k][thread_column + j];
      for (int i = 0; i < TM; ++i) {
        for (int j = 0; j < TN; ++j) {
          acc[i][j] += a[i] * b[j];
        }
      }
    }
    __syncthreads();
  }

  // Write-back.
  for (int i = 0; i < TM; ++i) {
    for (int j = 0; j < TN; ++j) {
      const int row = m0 + thread_row + i;
      const int column = n0 + thread_column + j;
      if (row < M && column < N) {
        update(&C[at<false>(row, column, ldc)], alpha, acc[i][j], beta);
      }
    }
  }
}
