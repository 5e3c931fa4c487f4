// Y[M,N] = X[M,K] W[N,K]^T + b[N], float32; W as [out, in], all row-major with leading dimensions.
// The first rung: tiles of X and W wait in shared memory, one element of Y a thread.
// Why start here: a loaded element serves 32 threads. The rows of W are the columns of the product.
// Bound by: shared memory. Every FMA reads two elements from it.
// Needs BM * BN threads and BM = BN = BK; any size, any alignment.
#include "layout.cuh"

template <int BM, int BN, int BK>
__global__ void projection_shared_tile(
    int M, int N, int K, const float* __restrict__ X, int ldx, const float* __restrict__ W, int ldw,
    const float* __restrict__ b, float* __restrict__ Y, int ldy) {
  constexpr int THREADS = BM * BN;
  static_assert(BM * BK == THREADS && BK * BN == THREADS, "one element of each tile a thread");

  // Which tile am I: rows from m0, columns from n0, one element a thread.
  const int m0 = block_y() * BM;
  const int n0 = blockIdx.x * BN;
  const int thread_row = threadIdx.x / BN;
  const int thread_column = threadIdx.x % BN;

  // Shared memory; W lies as in device memory, so a warp reads a column: an extra one spreads it.
  __shared__ float Xs[BM][BK];
  __shared__ float Ws[BN][BK + 1];
  const int load_row = threadIdx.x / BK;
  const int load_k = threadIdx.x % BK;

  // Main loop: load, sync, compute, sync.
  float acc = 0.0f;
  for (int k0 = 0; k0 < K; k0 += BK) {
    Xs[load_row][load_k] = element_or_zero<false>(X, m0 + load_row, k0 + load_k, M, K, ldx);
    Ws[load_row][load_k] = element_or_zero<false>(W, n0 + load_row, k0 + load_k, N, K, ldw);
    __syncthreads();
    for (int k = 0; k < BK; ++k) {
      acc += Xs[thread_row][k] * Ws[thread_column][k];
    }
    __syncthreads();
  }

  // Write-back.
  const int row = m0 + thread_row;
  const int column = n0 + thread_column;
  if (row < M && column < N) Y[at<false>(row, column, ldy)] = acc + b[column];
}
