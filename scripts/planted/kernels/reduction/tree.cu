// sums[b] = sum of the elements of x that block b meets; a tree of any number of threads.
// Needs 96 threads a block; any N, any grid.
constexpr int THREADS = 96;

__global__ void tree(int N, const float* __restrict__ x, float* __restrict__ sums) {
  __shared__ float s[THREADS];
  const int t = threadIdx.x;
  float sum = 0.0f;
  for (int i = blockIdx.x * THREADS + t; i < N; i += gridDim.x * THREADS) sum += x[i];
  s[t] = sum;
  __syncthreads();
  for (int active = THREADS; active > 1;) {
    const int half = (active + 1) / 2;
    if (t + half < active) s[t] += s[t + half];
    active = half;
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = s[0];
}
