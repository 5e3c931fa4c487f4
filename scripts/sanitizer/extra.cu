// out = f(in) with a fault of its own kind in each kernel; one block of 64 threads unless it says so.
// Together with the faults of the golden kernels: what compute-sanitizer and the simulator are compared on.
// Why these: the golden faults lack uninitialised global memory, races inside a warp and between blocks.
// Bound by: nothing that matters; each runs for microseconds.
// Needs 64 elements in every array.
extern "C" __global__ void right_exchange(const float* in, float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}

extern "C" __global__ void right_warp_exchange(const float* in, float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

extern "C" __global__ void right_atomic(const float* in, float* out) {
  atomicAdd(&out[threadIdx.x % 4], in[threadIdx.x]);
}

extern "C" __global__ void unwritten_global(const float* in, float* out) {
  out[threadIdx.x] = 2.0f * in[threadIdx.x];
}

extern "C" __global__ void unwritten_shared(const float* in, float* out) {
  __shared__ float tile[64];
  if (threadIdx.x < 48) tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void race_within_a_warp(const float* in, float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

extern "C" __global__ void race_between_blocks(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x] + blockIdx.x;
}

extern "C" __global__ void race_of_one_word(const float* in, float* out) {
  __shared__ float last;
  last = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = last;
}

extern "C" __global__ void shared_beyond_the_end(const float* in, float* out) {
  __shared__ float tile[60];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x ^ 1];
}

extern "C" __global__ void global_before_the_start(const float* in, float* out) {
  out[threadIdx.x] = in[static_cast<int>(threadIdx.x) - 1];
}

extern "C" __global__ void misaligned_vector(const float* in, float* out) {
  const float2 pair = *reinterpret_cast<const float2*>(&in[threadIdx.x / 2 + 1]);
  out[threadIdx.x] = pair.x + pair.y;
}

extern "C" __global__ void number_as_pointer(const float* in, float* out) {
  float* target = reinterpret_cast<float*>(4 * static_cast<unsigned long long>(in[threadIdx.x]));
  target[0] = 1.0f;
}

extern "C" __global__ void barrier_in_a_branch(const float* in, float* out) {
  if (threadIdx.x < 40) {
    out[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
  }
}

extern "C" __global__ void barrier_after_an_exit(const float* in, float* out) {
  if (threadIdx.x >= 40) return;
  out[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
}

extern "C" __global__ void shuffle_of_an_inactive_lane(const float* in, float* out) {
  float value = in[threadIdx.x];
  if (threadIdx.x % 32 < 16) value += __shfl_down_sync(0x0000ffffu, value, 1);
  out[threadIdx.x] = value;
}

extern "C" __global__ void mask_without_the_caller(const float* in, float* out) {
  if (threadIdx.x % 32 < 16) __syncwarp(0x000000ffu);
  out[threadIdx.x] = in[threadIdx.x];
}
