// Y[r,:] = exp(X[r,:] - max) / sum exp(X[r,:] - max), float32, row by row; a row of -inf gives 0.
// The first rung: a block a row; maximum and sum in one pass, put together in shared memory.
// Why start here: one pass over X instead of two. The row is read again to be written.
// Bound by: barriers. Each of the log2(THREADS) steps of the tree waits for the whole block.
// Needs THREADS a power of 2; any size, any alignment. After Milakov and Gimelshein (2018).
#include "layout.cuh"
#include "softmax.cuh"

template <int THREADS>
__global__ void softmax_shared(int R, int C, const float* __restrict__ X, int ldx,
                               float* __restrict__ Y, int ldy) {
  // Which row am I: one a block.
  const int row = blockIdx.x;
  const float* x = &X[at<false>(row, 0, ldx)];
  float* y = &Y[at<false>(row, 0, ldy)];

  // Shared memory: what each thread has seen.
  __shared__ Running part[THREADS];

  // Main loop: see the row, then add up what the threads have seen.
  Running seen = nothing_seen();
  for (int c = threadIdx.x; c < C; c += THREADS) see(seen, x[c]);
  part[threadIdx.x] = seen;
  __syncthreads();
  for (int half = THREADS / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      part[threadIdx.x] = merged(part[threadIdx.x], part[threadIdx.x + half]);
    }
    __syncthreads();
  }

  // Write-back.
  const float base = base_of(part[0].largest);
  const float scale = scale_of(part[0].sum);
  for (int c = threadIdx.x; c < C; c += THREADS) y[c] = expf(x[c] - base) * scale;
}
