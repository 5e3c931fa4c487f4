// X[N,N] becomes its transpose, float32, row-major; a block exchanges two tiles.
// Needs blocks of 16 x 16; N a multiple of 16.
__global__ void in_place(int N, float* X) {
  __shared__ float upper[16][17];
  __shared__ float lower[16][17];
  if (blockIdx.y > blockIdx.x) return;
  const int tx = threadIdx.x;
  const int ty = threadIdx.y;
  float* here = &X[(blockIdx.y * 16 + ty) * N + blockIdx.x * 16 + tx];
  float* there = &X[(blockIdx.x * 16 + ty) * N + blockIdx.y * 16 + tx];
  upper[ty][tx] = *here;
  lower[ty][tx] = *there;
  __syncthreads();
  *here = lower[tx][ty];
  *there = upper[tx][ty];
}
