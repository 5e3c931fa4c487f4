// Y[r,:] = X[r,:] - mean of X[r,:], float32; a block a row, which waits in dynamic shared memory
// in front of a vector with the sums of the warps. Needs 128 threads a block; any R and C.
constexpr int THREADS = 128, WARPS = THREADS / 32;

__global__ void centred(int C, const float* __restrict__ X, float* __restrict__ Y) {
  extern __shared__ __align__(16) float arena[];
  float* row = arena;
  float* parts = &arena[(C + 3) / 4 * 4];
  const float* x = &X[blockIdx.x * C];

  for (int c = threadIdx.x; c < C; c += THREADS) row[c] = x[c];
  __syncthreads();
  float sum = 0.0f;
  for (int c = threadIdx.x; c < C; c += THREADS) sum += row[C - 1 - c];
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();

  const float4 part = *reinterpret_cast<const float4*>(parts);
  const float mean = (part.x + part.y + part.z + part.w) / C;
  for (int c = threadIdx.x; c < C; c += THREADS) Y[blockIdx.x * C + c] = row[c] - mean;
}
