// C[M,N] = A[M,K] B[K,N], float32, all row-major: a control of the timed gate, not a rung.
// One thread an element: a few microseconds, so that a sample holds a hundred launches.
// Why it is here: a gate that finds it slower than itself, or misses more launches, is not believed.
// Bound by: the latency of loads. How long it takes does not matter, only that it stays the same.
// Needs whole blocks of 32 x 8. Its result is compared with its own, never with a reference.

__global__ void control(
    int M, int N, int K, const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb,
    float* __restrict__ C, int ldc) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= M || column >= N) return;

  float sum = 0.0f;
  for (int k = 0; k < K; ++k) {
    sum += A[row * lda + k] * B[k * ldb + column];
  }
  C[row * ldc + column] = sum;
}
