// C[M,N] = A[M,K] B[K,N], float16 to float32, row-major; nvcuda::wmma, a warp a 16 x 16 tile.
// Needs a warp a block; M, N and K multiples of 16, A and B aligned to 32 bytes.
#include <mma.h>

__global__ void warp_matrix(int N, int K, const __half* __restrict__ A,
                            const __half* __restrict__ B, float* __restrict__ C) {
  using namespace nvcuda::wmma;
  const int row = blockIdx.y * 16;
  const int column = blockIdx.x * 16;
  fragment<accumulator, 16, 16, 16, float> c;
  fill_fragment(c, 0.0f);
  for (int k = 0; k < K; k += 16) {
    fragment<matrix_a, 16, 16, 16, __half, row_major> a;
    fragment<matrix_b, 16, 16, 16, __half, row_major> b;
    load_matrix_sync(a, &A[row * K + k], K);
    load_matrix_sync(b, &B[k * N + column], N);
    mma_sync(c, a, b, c);
  }
  store_matrix_sync(&C[row * N + column], c, N, mem_row_major);
}
