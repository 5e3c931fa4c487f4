// y[i] = sum of x[i - 2] to x[i + 2], float32, 0 past the ends; a tile with its halo.
// Needs 64 threads a block; any N.
constexpr int RADIUS = 2, THREADS = 64;

__global__ void line(int N, const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float s[THREADS + 2 * RADIUS];
  const int t = threadIdx.x;
  const int i = blockIdx.x * THREADS + t;
  s[RADIUS + t] = i < N ? x[i] : 0.0f;
  if (t < RADIUS) {
    s[t] = i >= RADIUS ? x[i - RADIUS] : 0.0f;
    s[RADIUS + THREADS + t] = i + THREADS < N ? x[i + THREADS] : 0.0f;
  }
  __syncthreads();
  float sum = 0.0f;
  for (int d = 0; d <= 2 * RADIUS; ++d) sum += s[t + d];
  if (i < N) y[i] = sum;
}
