// C[M,N] = alpha * A[M,K] B[K,N] + beta * C, float32; A and B row- or column-major, C row-major.
// Adds to 08: a warp owns WM x WN of C, in sub-tiles that its lanes cover without gaps.
// Why faster: WM + WN shared reads of a warp, free of bank conflicts, feed WM * WN FMAs.
// Bound by: the FMA pipe, and the few warps that fit beside WM * WN / 32 sums a thread.
// Needs BM * BN / (WM * WN) warps; unaligned goes by elements. After S. Boehm (2022), kernel 10.
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

template <int BM, int BN, int BK, int WM, int WN, int WNITER, int TM, int TN, bool A_COL,
          bool B_COL>
__global__ void sgemm_warp_tile(
    int M, int N, int K, float alpha, const float* __restrict__ A, int lda,
    const float* __restrict__ B, int ldb, float beta, float* __restrict__ C, int ldc) {
  constexpr int THREADS = BM / WM * (BN / WN) * 32;
  constexpr int WMITER = WM * WN / (32 * TM * TN * WNITER);
  constexpr int WSUBM = WM / WMITER;
  constexpr int WSUBN = WN / WNITER;
  static_assert(WSUBM / TM * (WSUBN / TN) == 32, "a sub-tile is one thread tile a lane");
  static_assert(BK % 8 == 0 && TM % 4 == 0 && TN % 4 == 0, "tiles are made of float4 vectors");
  static_assert(BM * BK % (4 * THREADS) == 0 && BK * BN % (4 * THREADS) == 0, "even shares");

  // Which tile am I: rows from m0, columns from n0, TM x TN elements of each sub-tile a thread.
  const int m0 = block_y() * BM;
  const int n0 = blockIdx.x * BN;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int thread_row = warp / (BN / WN) * WM + lane / (WSUBN / TN) * TM;
  const int thread_column = warp % (BN / WN) * WN + lane % (WSUBN / TN) * TN;

  // Shared memory; four extra columns spread stores along k over the banks, and keep rows aligned.
  __shared__ alignas(16) float As[BK][BM + 4];
  __shared__ alignas(16) float Bs[BK][BN + 4];
  const bool a_vectors = made_of_vectors(A, A_COL ? M : K, lda);
  const bool b_vectors = made_of_vectors(B, B_COL ? K : N, ldb);
  const bool c_vectors = made_of_vectors(C, N, ldc);

  // Main loop: load, sync, compute, sync. B is loaded as its transpose, whose rows are n.
  K = summed_extent(alpha, K);
  float acc[WMITER * TM][WNITER * TN] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
    load_tile<BK, BM, THREADS, BM + 4, A_COL>(As, A, m0, k0, M, K, lda, a_vectors);
    load_tile<BK, BN, THREADS, BN + 4, !B_COL>(Bs, B, n0, k0, N, K, ldb, b_vectors);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      alignas(16) float a[WMITER * TM];
      alignas(16) float b[WNITER * TN];
      for (int i = 0; i < WMITER * TM; i += 4) {
        copy4(&a[i], &As[k][thread_row + i / TM * WSUBM + i % TM]);
      }
      for (int j = 0; j < WNITER * TN; j += 4) {
        copy4(&b[j], &Bs[k][thread_column + j / TN * WSUBN + j % TN]);
      }
      for (int i = 0; i < WMITER * TM; ++i) {
        for (int j = 0; j < WNITER * TN; ++j) {
          acc[i][j] += a[i] * b[j];
        }
      }
    }
    __syncthreads();
  }

  // Write-back, unrolled: acc stays in registers only if every index into it is known.
#pragma unroll
  for (int i = 0; i < WMITER * TM; ++i) {
    for (int j = 0; j < WNITER * TN; j += 4) {
      const int row = m0 + thread_row + i / TM * WSUBM + i % TM;
      const int column = n0 + thread_column + j / TN * WSUBN + j % TN;
      if (row < M) {
        update4(&C[at<false>(row, column, ldc)], N - column, c_vectors, alpha, &acc[i][j], beta);
      }
    }
  }
}
