// y = inclusive sums of each row of x[B,64], modulo 2^32; a step goes from one buffer to the other.
// Needs 64 threads a block.
__global__ void two_buffers(const unsigned* __restrict__ x, unsigned* __restrict__ y) {
  __shared__ unsigned buffer[2][64];
  const int t = threadIdx.x;
  int now = 0;
  buffer[0][t] = x[blockIdx.x * 64 + t];
  __syncthreads();
  for (int distance = 1; distance < 64; distance *= 2) {
    const int next = 1 - now;
    const unsigned below = t >= distance ? buffer[now][t - distance] : 0;
    buffer[next][t] = buffer[now][t] + below;
    now = next;
    __syncthreads();
  }
  y[blockIdx.x * 64 + t] = buffer[now][t];
}
