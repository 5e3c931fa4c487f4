// y = each 32 elements of x[N], the positive ones first, both parts in order; by a ballot.
// Needs whole warps; any N: what is missing of the last 32 counts as 0.
__global__ void partition(int N, const float* __restrict__ x, float* __restrict__ y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32;
  const float value = i < N ? x[i] : 0.0f;
  const bool keep = value > 0.0f;
  const unsigned kept = __ballot_sync(0xffffffffu, keep);
  const unsigned below = (1u << lane) - 1u;
  const int place = keep ? __popc(kept & below) : __popc(kept) + __popc(~kept & below);
  if (i / 32 * 32 < N) y[i / 32 * 32 + place] = value;
}
