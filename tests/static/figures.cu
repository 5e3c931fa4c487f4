// One kernel for each figure that a cubin or its log tells.

// 96 live values in the 64 registers that four blocks of 256 threads leave: spills.
template <int N>
__global__ void __launch_bounds__(256, 4) spilling(float* out, const float* in) {
  float values[N];
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = in[threadIdx.x + 256 * i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = values[i] * values[(i + N / 2) % N] + values[(3 * i) % N];
#pragma unroll
  for (int i = 0; i < N; ++i) out[threadIdx.x + 256 * i] = values[i];
}

// An array indexed at run time lives in local memory: a stack frame without spills.
extern "C" __global__ void indexed(float* out, const int* at) {
  float values[32];
  for (int i = 0; i < 32; ++i) values[i] = out[i];
  for (int i = 0; i < 32; ++i) values[at[i]] += 1.0f;
  out[threadIdx.x] = values[at[threadIdx.x]];
}

// The same, in a function that is not inlined.
__device__ __noinline__ float pick(const float* in, const int* at) {
  float values[32];
  for (int i = 0; i < 32; ++i) values[i] = in[i];
  for (int i = 0; i < 32; ++i) values[at[i]] += 1.0f;
  return values[at[threadIdx.x]];
}

extern "C" __global__ void calling(float* out, const float* in, const int* at) {
  out[threadIdx.x] = pick(in, at) + pick(in + 32, at);
}

// The calling kernel's own values outlive the call, the called function's do not fit: both spill.
template <int N>
__device__ __noinline__ float mix(const float* in) {
  float values[N];
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = in[threadIdx.x + 256 * i];
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < N; ++i) sum = sum * values[(3 * i) % N] + values[(i + N / 2) % N];
  return sum;
}

template <int N>
__global__ void __launch_bounds__(256, 4) spilling_twice(float* out, const float* in) {
  float values[N];
#pragma unroll
  for (int i = 0; i < N; ++i) values[i] = in[threadIdx.x + 256 * i];
  const float sum = mix<N>(in + 1) + mix<N>(in + 2);
#pragma unroll
  for (int i = 0; i < N; ++i) out[threadIdx.x + 256 * i] = values[i] * sum;
}

// 4096 bytes of static shared memory, moved 16 bytes at a time.
extern "C" __global__ void wide(float4* out, const float4* in) {
  __shared__ float4 tile[256];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[255 - threadIdx.x];
}

// Stored 4 bytes at a time, loaded 8 at a time.
extern "C" __global__ void half_wide(float2* out, const float* in) {
  __shared__ __align__(8) float tile[512];
  tile[threadIdx.x] = in[threadIdx.x];
  tile[threadIdx.x + 256] = in[threadIdx.x + 256];
  __syncthreads();
  out[threadIdx.x] = reinterpret_cast<const float2*>(tile)[255 - threadIdx.x];
}

// Dynamic shared memory, 4 bytes at a time.
extern "C" __global__ void narrow(float* out, const float* in) {
  extern __shared__ float buffer[];
  buffer[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = buffer[255 - threadIdx.x];
}

// An alignment above the 1024 bytes that the system reserves, and two arrays.
extern "C" __global__ void aligned(float* out, const float* in) {
  __shared__ __align__(2048) float tile[1000];
  __shared__ double extra[3];
  tile[threadIdx.x] = in[threadIdx.x];
  extra[threadIdx.x % 3] = in[3];
  __syncthreads();
  out[threadIdx.x] = tile[999 - threadIdx.x] + static_cast<float>(extra[0]);
}

// Named barriers 3 and 7: the compiler counts up to the highest.
extern "C" __global__ void barriers(float* out) {
  asm volatile("bar.sync 3, 64;");
  asm volatile("bar.sync 7, 64;");
  out[threadIdx.x] = 1.0f;
}
