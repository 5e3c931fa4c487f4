// A step of heat over a plane x[H,W], float32, 0 outside; coordinates are unsigned.
// Needs blocks of 16 x 8; any extents.
__global__ void plane(unsigned W, unsigned H, const float* x, float* y) {
  const unsigned column = blockIdx.x * 16 + threadIdx.x;
  const unsigned row = blockIdx.y * 8 + threadIdx.y;
  if (column >= W || row >= H) return;
  const unsigned at = row * W + column;
  const float left = column > 0 ? x[at - 1] : 0.0f;
  const float right = column + 1 < W ? x[at + 1] : 0.0f;
  const float above = row > 0 ? x[at - W] : 0.0f;
  const float below = row + 1 < H ? x[at + W] : 0.0f;
  y[at] = 0.5f * x[at] + 0.125f * (left + right + above + below);
}
