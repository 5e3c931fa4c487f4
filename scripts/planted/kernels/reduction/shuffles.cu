// total += sum of x[N], float32; shuffles in a warp, then one warp a block, then an atomic.
// Needs 256 threads a block; any N.
constexpr int WARPS = 8;

__global__ void shuffles(int N, const float* __restrict__ x, float* total) {
  __shared__ float part[32];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = i < N ? x[i] : 0.0f;
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (lane == 0) part[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < WARPS ? part[lane] : 0.0f;
    for (int distance = 16; distance > 0; distance /= 2) {
      sum += __shfl_down_sync(0xffffffffu, sum, distance);
    }
    if (lane == 0) atomicAdd(total, sum);
  }
}
