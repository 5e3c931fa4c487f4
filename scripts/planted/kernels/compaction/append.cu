// y[b] = sum of the squares of the odd elements of row b of x[B,64], modulo 2^32; they are put
// into a list first, in any order. Needs 64 threads a block.
__global__ void append(const unsigned* __restrict__ x, unsigned* __restrict__ y) {
  __shared__ unsigned list[64];
  __shared__ unsigned length;
  __shared__ unsigned total;
  const int t = threadIdx.x;
  if (t == 0) length = total = 0;
  __syncthreads();
  const unsigned value = x[blockIdx.x * 64 + t];
  if (value % 2 == 1) {
    const unsigned slot = atomicAdd(&length, 1u);
    list[slot] = value;
  }
  __syncthreads();
  if (t < length) {
    const unsigned mine = list[t];
    atomicAdd(&total, mine * mine);
  }
  __syncthreads();
  if (t == 0) y[blockIdx.x] = total;
}
