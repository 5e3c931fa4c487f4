// C[M,N] = A[M,K] B[K,N], float32, all row-major: a control of the timed gate, not a rung.
// Head's code of the positive control: 32 of K steps come twice.
// Why it is here: a gate that lets it pass cannot be believed.
// Bound by: the latency of loads, so that its time is proportional to the number of its steps.
// Needs nothing: any size. Its result is compared with its own, never with a reference.
#include "control.cuh"

__global__ void control_slowed(
    int M, int N, int K, const float* __restrict__ A, int lda, const float* __restrict__ B, int ldb,
    float* __restrict__ C, int ldc) {
  product<32>(M, N, K, A, lda, B, ldb, C, ldc);
}
