// counts[b] += how many elements of x[N] lie in part b of 32 of [0, 1]; one lane adds for all
// lanes of its warp that met the same part. Needs whole warps; any N.
constexpr int BINS = 32;

__global__ void leaders(int N, const float* __restrict__ x, unsigned* counts) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32;
  const int bin = i < N ? min(static_cast<int>(x[i] * BINS), BINS - 1) : -1;
  const unsigned peers = __match_any_sync(0xffffffffu, bin);
  const bool leads = lane == __ffs(peers) - 1;
  if (leads && bin >= 0) atomicAdd(&counts[bin], __popc(peers));
}
