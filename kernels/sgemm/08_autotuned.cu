// C[M,N] = alpha * A[M,K] B[K,N] + beta * C, float32; A and B row- or column-major, C row-major.
// Adds to 07: the load loops fit any tile, so each GPU gets its own (the table is in ladder.py).
// Why faster: BK = 16 halves the barriers per step; a smaller BM x BN fills a GPU with more blocks.
// Bound by: bank conflicts (2-way on B), and warps that wait for the next tile.
// Needs BM * BN / (TM * TN) threads; unaligned goes by elements. After S. Boehm (2022), kernel 9.
#include "blas.cuh"
#include "layout.cuh"
#include "vector.cuh"

// Copies the thread's vectors of a tile to shared memory; the axes are k and `outer`, m or n.
template <int BK, int EXTENT, int THREADS, int PITCH, bool COLUMN_MAJOR>
__device__ __forceinline__ void load_tile(float (&tile)[BK][PITCH], const float* matrix, int outer0,
                                          int k0, int outers, int K, int ld, bool vectors) {
#pragma unroll
  for (int first = 0; first < BK * EXTENT / 4; first += THREADS) {
    const int i = first + threadIdx.x;
    const int outer = COLUMN_MAJOR ? i % (EXTENT / 4) * 4 : i / 2 % EXTENT;
    const int k = COLUMN_MAJOR ? i / (EXTENT / 4) : i / (2 * EXTENT) * 8 + i % 2 * 4;
    const float4 v =
        vector_or_zero<COLUMN_MAJOR>(matrix, outer0 + outer, k0 + k, outers, K, ld, vectors);
    if (COLUMN_MAJOR) {
      *reinterpret_cast<float4*>(&tile[k][outer]) = v;
    } else {
      tile[k + 0][outer] = v.x;
      tile[k + 1][outer] = v.y;
      tile[k + 2][outer] = v.z;
      tile[k + 3][outer] = v.w;
    }
  }
}

template <int BM, int BN, int BK, int TM, int TN, bool A_COL, bool B_COL>
__global__ void sgemm_autotuned(
    int M, int N, int K, float alpha, const float* __restrict__ A, int lda,
    const float* __restrict__ B, int ldb, float beta, float* __restrict__ C, int ldc) {
  constexpr int THREADS = BM * BN / (TM * TN);
  static_assert(BK % 8 == 0 && TM % 4 == 0 && TN % 4 == 0, "tiles are made of float4 vectors");
  static_assert(BM * BK % (4 * THREADS) == 0 && BK * BN % (4 * THREADS) == 0, "even shares");

  // Which tile am I: rows from m0, columns from n0, TM x TN elements a thread.
  const int m0 = block_y() * BM;
  const int n0 = blockIdx.x * BN;
  const int thread_row = threadIdx.x / (BN / TN) * TM;
  const int thread_column = threadIdx.x % (BN / TN) * TN;

  // Shared memory; four extra columns spread stores along k over the banks, and keep rows aligned.
  __shared__ alignas(16) float As[BK][BM + 4];
  __shared__ alignas(16) float Bs[BK][BN + 4];
  const bool a_vectors = made_of_vectors(A, A_COL ? M : K, lda);
  const bool b_vectors = made_of_vectors(B, B_COL ? K : N, ldb);
  const bool c_vectors = made_of_vectors(C, N, ldc);

  // Main loop: load, sync, compute, sync. B is loaded as its transpose, whose rows are n.
  K = summed_extent(alpha, K);
  float acc[TM][TN] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
    load_tile<BK, BM, THREADS, BM + 4, A_COL>(As, A, m0, k0, M, K, lda, a_vectors);
    load_tile<BK, BN, THREADS, BN + 4, !B_COL>(Bs, B, n0, k0, N, K, ldb, b_vectors);
    __syncthreads();
    // Unrolled by two, not more: registers decide how many blocks share a multiprocessor.
#pragma unroll 2
    for (int k = 0; k < BK; ++k) {
      alignas(16) float a[TM];
      alignas(16) float b[TN];
      for (int i = 0; i < TM; i += 4) copy4(&a[i], &As[k][thread_row + i]);
      for (int j = 0; j < TN; j += 4) copy4(&b[j], &Bs[k][thread_column + j]);
      for (int i = 0; i < TM; ++i) {
        for (int j = 0; j < TN; ++j) {
          acc[i][j] += a[i] * b[j];
        }
      }
    }
    __syncthreads();
  }

  // Write-back, unrolled: acc stays in registers only if every index into it is known.
#pragma unroll
  for (int i = 0; i < TM; ++i) {
    for (int j = 0; j < TN; j += 4) {
      const int row = m0 + thread_row + i;
      const int column = n0 + thread_column + j;
      if (row < M) {
        update4(&C[at<false>(row, column, ldc)], N - column, c_vectors, alpha, &acc[i][j], beta);
      }
    }
  }
}
