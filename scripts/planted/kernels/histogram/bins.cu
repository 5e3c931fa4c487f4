// counts[b] += how many elements of x[N] lie in part b of 32 of [0, 1]; in shared memory first.
// Any block, any N.
constexpr int BINS = 32;

__global__ void bins(int N, const float* __restrict__ x, unsigned* counts) {
  __shared__ unsigned own[BINS];
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) own[bin] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x) {
    const int bin = min(static_cast<int>(x[i] * BINS), BINS - 1);
    atomicAdd(&own[bin], 1u);
  }
  __syncthreads();
  for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) atomicAdd(&counts[bin], own[bin]);
}
