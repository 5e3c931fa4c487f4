// C[M,N] = alpha * A[M,K] B[K,N] + beta * C, float32; A and B row- or column-major, C row-major.
// Adds to 09: the next tile is fetched to registers while this one is computed from one of two.
// Why faster: no warp waits for global memory in front of a barrier; one barrier a step, not two.
// Bound by: the FMA pipe. One block fits a multiprocessor, so all latency is hidden inside it.
// Needs BM * BN / (WM * WN) warps; unaligned goes by elements. After S. Boehm (2022), kernel 11.
#include "blas.cuh"
#include "layout.cuh"
#include "vector.cuh"

// Place in a tile of the thread's vector number i; the axes are k and `outer`, m or n.
template <int EXTENT, bool COLUMN_MAJOR>
__device__ __forceinline__ int outer_of(int i) {
  return COLUMN_MAJOR ? i % (EXTENT / 4) * 4 : i / 2 % EXTENT;
}

template <int EXTENT, bool COLUMN_MAJOR>
__device__ __forceinline__ int k_of(int i) {
  return COLUMN_MAJOR ? i / (EXTENT / 4) : i / (2 * EXTENT) * 8 + i % 2 * 4;
}

// Copies the thread's vectors of a tile to registers.
template <int EXTENT, int THREADS, bool COLUMN_MAJOR, int COUNT>
__device__ __forceinline__ void fetch_tile(float4 (&next)[COUNT], const float* matrix, int outer0,
                                           int k0, int outers, int K, int ld, bool vectors) {
#pragma unroll
  for (int n = 0; n < COUNT; ++n) {
    const int i = n * THREADS + threadIdx.x;
    const int outer = outer0 + outer_of<EXTENT, COLUMN_MAJOR>(i);
    const int k = k0 + k_of<EXTENT, COLUMN_MAJOR>(i);
    next[n] = vector_or_zero<COLUMN_MAJOR>(matrix, outer, k, outers, K, ld, vectors);
  }
}

// Copies them on to shared memory.
template <int EXTENT, int THREADS, bool COLUMN_MAJOR, int BK, int PITCH, int COUNT>
__device__ __forceinline__ void store_tile(float (&tile)[BK][PITCH], const float4 (&next)[COUNT]) {
#pragma unroll
  for (int n = 0; n < COUNT; ++n) {
    const int i = n * THREADS + threadIdx.x;
    const int outer = outer_of<EXTENT, COLUMN_MAJOR>(i);
    const int k = k_of<EXTENT, COLUMN_MAJOR>(i);
    if (COLUMN_MAJOR) {
      *reinterpret_cast<float4*>(&tile[k][outer]) = next[n];
    } else {
      tile[k + 0][outer] = next[n].x;
      tile[k + 1][outer] = next[n].y;
      tile[k + 2][outer] = next[n].z;
      tile[k + 3][outer] = next[n].w;
    }
  }
}

template <int BM, int BN, int BK, int WM, int WN, int WNITER, int TM, int TN, bool A_COL,
          bool B_COL>
__global__ void sgemm_double_buffer(
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
  __shared__ alignas(16) float As[2][BK][BM + 4];
  __shared__ alignas(16) float Bs[2][BK][BN + 4];
  const bool a_vectors = made_of_vectors(A, A_COL ? M : K, lda);
  const bool b_vectors = made_of_vectors(B, B_COL ? K : N, ldb);
  const bool c_vectors = made_of_vectors(C, N, ldc);

  // Main loop: fetch, compute, store, sync. B is loaded as its transpose, whose rows are n.
  K = summed_extent(alpha, K);
  float acc[WMITER * TM][WNITER * TN] = {};
  float4 a_next[BM * BK / (4 * THREADS)];
  float4 b_next[BK * BN / (4 * THREADS)];
  fetch_tile<BM, THREADS, A_COL>(a_next, A, m0, 0, M, K, lda, a_vectors);
  fetch_tile<BN, THREADS, !B_COL>(b_next, B, n0, 0, N, K, ldb, b_vectors);
  store_tile<BM, THREADS, A_COL>(As[0], a_next);
  store_tile<BN, THREADS, !B_COL>(Bs[0], b_next);
  __syncthreads();
  int now = 0;
  for (int k0 = 0; k0 < K; k0 += BK) {
    const bool more = k0 + BK < K;
    if (more) {
      fetch_tile<BM, THREADS, A_COL>(a_next, A, m0, k0 + BK, M, K, lda, a_vectors);
      fetch_tile<BN, THREADS, !B_COL>(b_next, B, n0, k0 + BK, N, K, ldb, b_vectors);
    }
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      alignas(16) float a[WMITER * TM];
      alignas(16) float b[WNITER * TN];
      for (int i = 0; i < WMITER * TM; i += 4) {
        copy4(&a[i], &As[now][k][thread_row + i / TM * WSUBM + i % TM]);
      }
      for (int j = 0; j < WNITER * TN; j += 4) {
        copy4(&b[j], &Bs[now][k][thread_column + j / TN * WSUBN + j % TN]);
      }
      for (int i = 0; i < WMITER * TM; ++i) {
        for (int j = 0; j < WNITER * TN; ++j) {
          acc[i][j] += a[i] * b[j];
        }
      }
    }
    now ^= 1;
    if (more) {
      store_tile<BM, THREADS, A_COL>(As[now], a_next);
      store_tile<BN, THREADS, !B_COL>(Bs[now], b_next);
      __syncthreads();
    }
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
