// y = inclusive sums of each row of x[B,128], modulo 2^32; shuffles in a warp, totals of warps.
// Needs 128 threads a block.
__global__ void block_scan(const unsigned* __restrict__ x, unsigned* __restrict__ y) {
  __shared__ unsigned sums[4];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int i = blockIdx.x * 128 + threadIdx.x;
  unsigned value = x[i];
  for (int distance = 1; distance < 32; distance *= 2) {
    const unsigned below = __shfl_up_sync(0xffffffffu, value, distance);
    if (lane >= distance) value += below;
  }
  if (lane == 31) sums[warp] = value;
  __syncthreads();
  for (int before = 0; before < warp; ++before) value += sums[before];
  y[i] = value;
}
