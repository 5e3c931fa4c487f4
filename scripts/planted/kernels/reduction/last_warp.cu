// sums[b] = sum of row b of x[B,64], float32; the last warp works without barriers of the block.
// Needs 64 threads a block.
__global__ void last_warp(const float* __restrict__ x, float* __restrict__ sums) {
  __shared__ float s[64];
  const int t = threadIdx.x;
  s[t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  if (t >= 32) return;
  s[t] += s[t + 32];
  __syncwarp();
  for (int distance = 16; distance > 0; distance /= 2) {
    const float other = t < distance ? s[t + distance] : 0.0f;
    __syncwarp();
    s[t] += other;
    __syncwarp();
  }
  if (t == 0) sums[blockIdx.x] = s[0];
}
