// C[M,N] = alpha * A[M,K] B[K,N] + beta * C, float32; A and B row- or column-major, C row-major.
// The first rung: one thread computes one element of C, straight from the definition.
// Why start here: every later rung is judged against it. 2 global loads feed 1 FMA.
// Bound by: scattered loads. Neighbours in a warp walk down a column: 32 sectors a load of A.
// Needs nothing: any size, any alignment, no shared memory. After S. Boehm (2022), kernel 1.
#include "blas.cuh"
#include "layout.cuh"

template <bool A_COL, bool B_COL>
__global__ void sgemm_naive(
    int M, int N, int K, float alpha, const float* __restrict__ A, int lda,
    const float* __restrict__ B, int ldb, float beta, float* __restrict__ C, int ldc) {
  // Which tile am I: a single element.
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  const int column = block_y() * blockDim.y + threadIdx.y;
  if (row >= M || column >= N) return;

  // Main loop.
  K = summed_extent(alpha, K);
  float acc = 0.0f;
  for (int k = 0; k < K; ++k) {
    acc += A[at<A_COL>(row, k, lda)] * B[at<B_COL>(k, column, ldb)];
  }

  // Write-back.
  update(&C[at<false>(row, column, ldc)], alpha, acc, beta);
}
