// What both controls of a timed gate run: a plain product, whose last steps may come twice.
#pragma once

/// C[M,N] = A[M,K] B[K,N] by one thread an element; the first EXTRA steps are summed again, so that
/// the time grows by EXTRA / K and by nothing else.
template <int EXTRA>
__device__ void product(
    int M, int N, int K, const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb,
    float* __restrict__ C, int ldc) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= M || column >= N) return;

  float sum = 0.0f;
  for (int step = 0; step < K + EXTRA; ++step) {
    const int k = step < K ? step : step - K;
    sum += A[row * lda + k] * B[k * ldb + column];
  }
  C[row * ldc + column] = sum;
}
