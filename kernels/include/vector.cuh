#pragma once

#include "blas.cuh"
#include "layout.cuh"

// Whether a matrix is made of float4 vectors: every line begins on a 16-byte boundary and ends with
// a whole vector. One answer for the whole launch, so no warp diverges over it.
__device__ __forceinline__ bool made_of_vectors(const float* matrix, int line_extent, int ld) {
  const bool begins = reinterpret_cast<unsigned long long>(matrix) % 16 == 0 && ld % 4 == 0;
  return begins && line_extent % 4 == 0;
}

// Copies four neighbours in one access; both places lie on a 16-byte boundary.
__device__ __forceinline__ void copy4(float* to, const float* from) {
  *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
}

// Four neighbours along the contiguous axis, from (row, column) on; zeros outside the matrix.
template <bool COLUMN_MAJOR>
__device__ __forceinline__ float4 vector_or_zero(const float* matrix, int row, int column, int rows,
                                                 int columns, int ld, bool vectors) {
  if (vectors) {
    return row < rows && column < columns
               ? *reinterpret_cast<const float4*>(&matrix[at<COLUMN_MAJOR>(row, column, ld)])
               : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  }
  float v[4];
  for (int i = 0; i < 4; ++i) {
    v[i] = element_or_zero<COLUMN_MAJOR>(matrix, COLUMN_MAJOR ? row + i : row,
                                         COLUMN_MAJOR ? column : column + i, rows, columns, ld);
  }
  return make_float4(v[0], v[1], v[2], v[3]);
}

// Four neighbours in a row of C = alpha * product + beta * C; the first `inside` of them exist.
__device__ __forceinline__ void update4(float* c, int inside, bool vectors, float alpha,
                                        const float* product, float beta) {
  if (!vectors) {
    for (int i = 0; i < 4; ++i) {
      if (i < inside) update(&c[i], alpha, product[i], beta);
    }
  } else if (inside > 0) {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (beta != 0.0f) v = *reinterpret_cast<const float4*>(c);
    v.x = alpha * product[0] + beta * v.x;
    v.y = alpha * product[1] + beta * v.y;
    v.z = alpha * product[2] + beta * v.z;
    v.w = alpha * product[3] + beta * v.w;
    *reinterpret_cast<float4*>(c) = v;
  }
}
