// C[M,N] = alpha * A[M,K] B[K,N] + beta * C, float32; A and B row- or column-major, C row-major.
// Adds to 03: nothing but a tile of 32 x 32 x 32 in place of 16 x 16 x 16.
// Why faster: global loads per FMA halve, to 1/32 + 1/32, and a warp is one row of the tile.
// Bound by: shared memory still; the tile is as large as the 1024 threads of a block allow.
// Needs BM * BN threads and BM = BN = BK; any size, any alignment. After S. Boehm (2022), kernel 3.
#include "blas.cuh"
#include "layout.cuh"

template <int BM, int BN, int BK, bool A_COL, bool B_COL>
__global__ void sgemm_shared_tile(
    int M, int N, int K, float alpha, const float* __restrict__ A, int lda,
    const float* __restrict__ B, int ldb, float beta, float* __restrict__ C, int ldc) {
  constexpr int THREADS = BM * BN;
  static_assert(BM * BK == THREADS && BK * BN == THREADS, "one element of each tile a thread");

  // Which tile am I: rows from m0, columns from n0, one element a thread.
  const int m0 = block_y() * BM;
  const int n0 = blockIdx.x * BN;
  const int thread_row = threadIdx.x / BN;
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
  float acc = 0.0f;
  for (int k0 = 0; k0 < K; k0 += BK) {
    As[a_row][a_k] = element_or_zero<A_COL>(A, m0 + a_row, k0 + a_k, M, K, lda);
    Bs[b_k][b_column] = element_or_zero<B_COL>(B, k0 + b_k, n0 + b_column, K, N, ldb);
    __syncthreads();
    for (int k = 0; k < BK; ++k) {
      acc += As[thread_row][k] * Bs[k][thread_column];
    }
    __syncthreads();
  }

  // Write-back.
  const int row = m0 + thread_row;
  const int column = n0 + thread_column;
  if (row < M && column < N) {
    update(&C[at<false>(row, column, ldc)], alpha, acc, beta);
  }
}
