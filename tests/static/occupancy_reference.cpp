// Reads launches from standard input and prints what NVIDIA's occupancy calculator says of each.
//
// In:  major minor registers static_shared dynamic_shared threads barriers
// Out: resident blocks, then the limits of threads, blocks, registers, shared memory, barriers.

#include <climits>
#include <cstdio>
#include <cstring>

#include "cuda_occupancy.h"

// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
static cudaOccDeviceProp device(int major, int minor) {
  const int capability = 10 * major + minor;
  const bool large = capability == 80 || (capability >= 90 && capability <= 103);
  const int shared_kib = capability == 75 ? 64 : capability == 80 ? 164 : large ? 228 : 100;
  cudaOccDeviceProp properties;
  properties.computeMajor = major;
  properties.computeMinor = minor;
  properties.maxThreadsPerBlock = 1024;
  properties.maxThreadsPerMultiprocessor = capability == 75 ? 1024 : large ? 2048 : 1536;
  properties.regsPerBlock = 65536;
  properties.regsPerMultiprocessor = 65536;
  properties.warpSize = 32;
  properties.numSms = 1;
  properties.sharedMemPerBlock = 48 * 1024;
  properties.sharedMemPerMultiprocessor = 1024 * shared_kib;
  properties.reservedSharedMemPerBlock = capability == 75 ? 0 : 1024;
  properties.sharedMemPerBlockOptin =
      properties.sharedMemPerMultiprocessor - properties.reservedSharedMemPerBlock;
  return properties;
}

int main() {
  int major, minor, registers, threads, barriers;
  size_t fixed, dynamic;
  while (std::scanf("%d %d %d %zu %zu %d %d", &major, &minor, &registers, &fixed, &dynamic,
                    &threads, &barriers) == 7) {
    const cudaOccDeviceProp properties = device(major, minor);
    const cudaOccDeviceState state;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = fixed;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = dynamic;
    kernel.numBlockBarriers = barriers;
    cudaOccResult result;
    if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &kernel, &state, threads,
                                                dynamic) != CUDA_OCC_SUCCESS) {
      std::fprintf(stderr, "no answer for capability %d.%d\n", major, minor);
      return 1;
    }
    std::printf("%d %d %d %d %d %d\n", result.activeBlocksPerMultiprocessor, result.blockLimitWarps,
                result.blockLimitBlocks, result.blockLimitRegs, result.blockLimitSharedMem,
                result.blockLimitBarriers);
  }
  return 0;
}
