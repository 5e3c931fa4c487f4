// y = sum of the rows of x[T,32], each backwards, float32; one warp fills buffers, another adds.
// Barriers 1 and 2 say that a buffer is full, 3 and 4 that it is empty. Needs two warps.
__device__ __forceinline__ void wait(int barrier) {
  asm volatile("bar.sync %0, 64;" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void arrive(int barrier) {
  asm volatile("bar.arrive %0, 64;" ::"r"(barrier) : "memory");
}

__global__ void named(int T, const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float buffer[2][32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int tile = 0; tile < T; ++tile) {
      if (tile >= 2) wait(3 + tile % 2);
      buffer[tile % 2][lane] = x[tile * 32 + lane];
      arrive(1 + tile % 2);
    }
  } else {
    float sum = 0.0f;
    for (int tile = 0; tile < T; ++tile) {
      wait(1 + tile % 2);
      sum += buffer[tile % 2][31 - lane];
      if (tile + 2 < T) arrive(3 + tile % 2);
    }
    y[lane] = sum;
  }
}
