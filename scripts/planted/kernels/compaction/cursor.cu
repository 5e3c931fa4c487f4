// y begins with the positive elements of x[N], in order; the rest of y stays. A warp draws places
// from a cursor in memory, one atomic for 32 elements. Needs one warp, and the cursor 0.
__global__ void cursor(int N, const float* __restrict__ x, unsigned* cursor, float* y) {
  const int lane = threadIdx.x;
  for (int i0 = 0; i0 < N; i0 += 32) {
    const float value = i0 + lane < N ? x[i0 + lane] : 0.0f;
    const bool keep = value > 0.0f;
    const unsigned kept = __ballot_sync(0xffffffffu, keep);
    if (kept == 0) continue;
    const int leader = __ffs(kept) - 1;
    unsigned base = 0;
    if (lane == leader) base = atomicAdd(cursor, __popc(kept));
    base = __shfl_sync(0xffffffffu, base, leader);
    if (keep) y[base + __popc(kept & ((1u << lane) - 1u))] = value;
  }
}
