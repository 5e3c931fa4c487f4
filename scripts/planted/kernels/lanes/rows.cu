// y[M] = A[M,K] x[K], float16 to float32, row-major; a warp a row.
// Needs 128 threads a block; any M and K.
#include <cuda_fp16.h>

typedef float Sum;

__global__ void rows(int M, int K, const __half* __restrict__ A, const __half* __restrict__ x,
                     float* __restrict__ y) {
  const int row = blockIdx.x * 4 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= M) return;
  Sum sum = 0.0f;
  for (int k = lane; k < K; k += 32) {
    sum = Sum(float(sum) + float(A[row * K + k]) * float(x[k]));
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    const Sum other = __shfl_xor_sync(0xffffffffu, sum, distance);
    sum = Sum(float(sum) + float(other));
  }
  if (lane == 0) y[row] = float(sum);
}
