// C[M,N] = A[M,K] B[K,N], float16 to float32, row-major; ldmatrix and mma.sync m16n8k16.
// Needs 64 threads a block; N a multiple of 32, K of 16, A and B aligned to 16 bytes.
#include <cuda_fp16.h>

__device__ __forceinline__ unsigned address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

__global__ void fragments(int M, int N, int K, const __half* __restrict__ A,
                          const __half* __restrict__ B, float* __restrict__ C) {
  __shared__ __align__(16) __half As[32][16 + 8];
  __shared__ __align__(16) __half Bs[16][32 + 8];
  const int lane = threadIdx.x % 32;
  const int m0 = blockIdx.y * 32;
  const int n0 = blockIdx.x * 32;
  const int warp_row = threadIdx.x / 32 * 16;
  const int row = m0 + warp_row + lane / 4;
  const int a_row = threadIdx.x / 2;
  const int a_k = threadIdx.x % 2 * 8;
  const int b_k = threadIdx.x / 4;
  const int b_column = threadIdx.x % 4 * 8;

  float acc[4][4] = {};
  for (int k0 = 0; k0 < K; k0 += 16) {
    uint4 v = {0, 0, 0, 0};
    if (m0 + a_row < M) v = *reinterpret_cast<const uint4*>(&A[(m0 + a_row) * K + k0 + a_k]);
    *reinterpret_cast<uint4*>(&As[a_row][a_k]) = v;
    const __half* b_from = &B[(k0 + b_k) * N + n0 + b_column];
    *reinterpret_cast<uint4*>(&Bs[b_k][b_column]) = *reinterpret_cast<const uint4*>(b_from);
    __syncthreads();

    unsigned a[4];
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(address(&As[warp_row + lane % 16][lane / 16 * 8])));
    for (int j = 0; j < 4; ++j) {
      unsigned b[2];
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                   : "=r"(b[0]), "=r"(b[1])
                   : "r"(address(&Bs[lane % 16][8 * j])));
      asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                   "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                   : "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    __syncthreads();
  }

  for (int j = 0; j < 4; ++j) {
    const int column = n0 + 8 * j + lane % 4 * 2;
    if (row < M) C[row * N + column] = acc[j][0];
    if (row < M) C[row * N + column + 1] = acc[j][1];
    if (row + 8 < M) C[(row + 8) * N + column] = acc[j][2];
    if (row + 8 < M) C[(row + 8) * N + column + 1] = acc[j][3];
  }
}
