// y[r,c] = sum of x[r - 4,c] to x[r,c], float32, 0 in the first four rows; a thread goes down a
// column and keeps the last rows in a ring in local memory. Needs H at least 5.
constexpr int TAPS = 5;

__global__ void window(int W, int H, const unsigned* __restrict__ taps,
                       const float* __restrict__ x, float* __restrict__ y) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= W) return;
  float ring[TAPS];
  for (int row = 0; row < TAPS - 1; ++row) ring[row] = x[row * W + column];
  for (int row = 0; row < TAPS - 1; ++row) y[row * W + column] = 0.0f;
  for (int row = TAPS - 1; row < H; ++row) {
    ring[row % TAPS] = x[row * W + column];
    float sum = 0.0f;
    for (int tap = 0; tap < TAPS; ++tap) sum += ring[(row + taps[tap]) % TAPS];
    y[row * W + column] = sum;
  }
}
