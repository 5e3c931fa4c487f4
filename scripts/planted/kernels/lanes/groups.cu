// y[r] = sum of the first lengths[r] elements of row r of x[R,K], float32; 8 lanes a row, which
// leave their loop when their row ends. Needs whole warps; any R and K.
__global__ void groups(int R, int K, const unsigned* __restrict__ lengths,
                       const float* __restrict__ x, float* __restrict__ y) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 8;
  const int lane = threadIdx.x % 32;
  const unsigned mask = 0xffu << (lane / 8 * 8);
  const int length = row < R ? lengths[row] : 0;
  float sum = 0.0f;
  for (int k0 = 0; k0 < length; k0 += 8) {
    const int k = k0 + lane % 8;
    float value = k < length ? x[row * K + k] : 0.0f;
    for (int distance = 4; distance > 0; distance /= 2) {
      value += __shfl_xor_sync(mask, value, distance);
    }
    sum += value;
  }
  if (row < R && lane % 8 == 0) y[row] = sum;
}
