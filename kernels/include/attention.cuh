#pragma once

#include "layout.cuh"
#include "softmax_rows.cuh"

// What `mask` says: every key counts; a matrix is added to the scores; keys behind the query do not
// count.
constexpr int ADDITIVE = 1;
constexpr int CAUSAL = 2;

// How many keys query i looks at, from the first on.
__device__ __forceinline__ int keys_seen(int i, int S, int mask) {
  return mask == CAUSAL ? i + 1 : S;
}

// A score under the mask. A mask of -inf wins over any score, NaN included.
__device__ __forceinline__ float masked(float score, const float* Mask, int i, int j, int S,
                                        int mask) {
  if (mask != ADDITIVE) return score;
  const float added = Mask[at<false>(i, j, S)];
  return added == minus_infinity() ? added : score + added;
}

// Whether a value is NaN or infinite, so that 0 times it is NaN.
__device__ __forceinline__ bool special(float v) { return !(fabsf(v) < -minus_infinity()); }

// acc + weight * value; with GUARD, a weight of 0 takes nothing of the value, not even its NaN.
template <bool GUARD>
__device__ __forceinline__ float plus_weighted(float acc, float weight, float value) {
  return GUARD && weight == 0.0f ? acc : acc + weight * value;
}

// Which queries of which head a block works on; heads of all batches lie one after the other.
struct Tile {
  long long head;
  int first_query;
};

template <int QUERIES>
__device__ __forceinline__ Tile which_tile(int S) {
  const int tiles = (S + QUERIES - 1) / QUERIES;
  return {block_y() / tiles, block_y() % tiles * QUERIES};
}

// The scores of one query become weights, in place, by all threads of a block. Keys behind the
// query stay as they are: nobody reads them.
template <int VECTORS>
__device__ __forceinline__ void softmax_weights(float* P, int S, int mask) {
  const long long row = blockIdx.x;
  const int seen = keys_seen(static_cast<int>(row % S), S, mask);
  const bool vectors = made_of_vectors(P, seen, S);
  softmax_row<VECTORS>(&P[row * S], &P[row * S], seen, vectors, true);
}
