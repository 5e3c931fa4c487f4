// y = inclusive sums of all of x[B,32], modulo 2^32; a block waits for the total of the one before.
// Needs 32 threads a block, flags 0, and blocks that start in order.
__global__ void chained(const unsigned* __restrict__ x, unsigned* __restrict__ y, unsigned* totals,
                        unsigned* flags) {
  __shared__ unsigned s[32];
  __shared__ unsigned carry;
  const int t = threadIdx.x;
  s[t] = x[blockIdx.x * 32 + t];
  __syncthreads();
  if (t == 0) {
    for (int i = 1; i < 32; ++i) s[i] += s[i - 1];
    carry = 0;
    if (blockIdx.x > 0) {
      while (*static_cast<volatile unsigned*>(&flags[blockIdx.x - 1]) == 0) {
      }
      __threadfence();
      carry = totals[blockIdx.x - 1];
    }
    totals[blockIdx.x] = carry + s[31];
    __threadfence();
    *static_cast<volatile unsigned*>(&flags[blockIdx.x]) = 1;
  }
  __syncthreads();
  y[blockIdx.x * 32 + t] = carry + s[t];
}
