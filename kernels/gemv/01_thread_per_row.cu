// y[M] = W[M,K] x[K], bfloat16 in and out, float32 sums; W row-major with leading dimension ldw.
// The first rung: one thread computes one element of y and walks along a row of W.
// Why start here: every later rung is judged against it. Each weight is read once, and used once.
// Bound by: scattered loads. The rows of a warp lie ldw apart: 32 sectors for 64 bytes of use.
// Needs nothing: any size, any alignment, no shared memory.
#include "bfloat16.cuh"
#include "layout.cuh"

__global__ void gemv_thread_per_row(
    int M, int K, const __nv_bfloat16* __restrict__ W, int ldw,
    const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y) {
  // Which row am I: one a thread.
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= M) return;

  // Main loop.
  float sum = 0.0f;
  for (int k = 0; k < K; ++k) {
    sum += __bfloat162float(W[at<false>(row, k, ldw)]) * __bfloat162float(x[k]);
  }

  // Write-back.
  y[row] = __float2bfloat16_rn(sum);
}
