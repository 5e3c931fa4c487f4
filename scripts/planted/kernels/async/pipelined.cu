// C[M,N] = A[M,K] B[K,N], float32, row-major; tiles are copied by cp.async two steps ahead.
// Needs 64 threads a block; M and N multiples of 32, K of 4, A and B aligned to 16 bytes.
constexpr int BM = 32, BN = 32, BK = 16, STAGES = 3, THREADS = 64;

__device__ __forceinline__ void copy16(float* to, const float* from, int bytes) {
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int OPEN>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(OPEN) : "memory");
}

__global__ void pipelined(int N, int K, const float* __restrict__ A, const float* __restrict__ B,
                          float* __restrict__ C) {
  __shared__ __align__(16) float As[STAGES][BM][BK];
  __shared__ __align__(16) float Bs[STAGES][BK][BN];
  const int m0 = blockIdx.y * BM;
  const int n0 = blockIdx.x * BN;
  const int ty = threadIdx.x / 8;
  const int tx = threadIdx.x % 8;
  const int tiles = (K + BK - 1) / BK;

  auto fetch = [&](int tile, int stage) {
    for (int i = threadIdx.x; i < BM * BK / 4; i += THREADS) {
      const int k = tile * BK + i % 4 * 4;
      const float* from = &A[(m0 + i / 4) * K + k];
      copy16(&As[stage][i / 4][i % 4 * 4], from, k < K ? 16 : 0);
    }
    for (int i = threadIdx.x; i < BK * BN / 4; i += THREADS) {
      const int k = tile * BK + i / 8;
      const float* from = &B[k * N + n0 + i % 8 * 4];
      copy16(&Bs[stage][i / 8][i % 8 * 4], from, k < K ? 16 : 0);
    }
  };

  for (int tile = 0; tile < STAGES - 1; ++tile) {
    if (tile < tiles) fetch(tile, tile);
    commit();
  }
  float acc[4][4] = {};
  for (int tile = 0; tile < tiles; ++tile) {
    wait<STAGES - 2>();
    __syncthreads();
    const int next = tile + STAGES - 1;
    if (next < tiles) fetch(next, next % STAGES);
    commit();
    const int stage = tile % STAGES;
    for (int k = 0; k < BK; ++k) {
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
          acc[i][j] += As[stage][4 * ty + i][k] * Bs[stage][k][4 * tx + j];
        }
      }
    }
  }

  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      C[(m0 + 4 * ty + i) * N + n0 + 4 * tx + j] = acc[i][j];
    }
  }
}
