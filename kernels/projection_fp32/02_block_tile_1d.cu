// Y[M,N] = X[M,K] W[N,K]^T + b[N], float32; W as [out, in], all row-major with leading dimensions.
// Adds to 01: a thread computes TM elements of one column of Y and keeps them in registers.
// Why faster: an element of W read once feeds TM FMAs; shared reads per FMA: from 2 to 1 + 1/TM.
// Bound by: shared memory still. Each element of X is read for a single FMA.
// Needs BM * BN / TM threads, one element of each tile a thread; any size, any alignment.
#include "layout.cuh"

template <int BM, int BN, int BK, int TM>
__global__ void projection_block_tile_1d(
    int M, int N, int K, const float* __restrict__ X, int ldx, const float* __restrict__ W, int ldw,
    const float* __restrict__ b, float* __restrict__ Y, int ldy) {
  constexpr int THREADS = BM * BN / TM;
  static_assert(BM * BK == THREADS && BK * BN == THREADS, "one element of each tile a thread");

  // Which tile am I: rows from m0, columns from n0, a column of TM elements a thread.
  const int m0 = block_y() * BM;
  const int n0 = blockIdx.x * BN;
  const int thread_row = threadIdx.x / BN * TM;
  const int thread_column = threadIdx.x % BN;

  // Shared memory; W is transposed on its way, and four extra columns spread that over the banks.
  __shared__ float Xs[BM][BK];
  __shared__ float Ws[BK][BN + 4];
  const int load_row = threadIdx.x / BK;
  const int load_k = threadIdx.x % BK;

  // Main loop: load, sync, compute, sync.
  float acc[TM] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
    Xs[load_row][load_k] = element_or_zero<false>(X, m0 + load_row, k0 + load_k, M, K, ldx);
    Ws[load_k][load_row] = element_or_zero<false>(W, n0 + load_row, k0 + load_k, N, K, ldw);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      const float w = Ws[k][thread_column];
      for (int i = 0; i < TM; ++i) {
        acc[i] += Xs[thread_row + i][k] * w;
      }
    }
    __syncthreads();
  }

  // Write-back.
  for (int i = 0; i < TM; ++i) {
    const int row = m0 + thread_row + i;
    const int column = n0 + thread_column;
    if (row < M && column < N) Y[at<false>(row, column, ldy)] = acc[i] + b[column];
  }
}
