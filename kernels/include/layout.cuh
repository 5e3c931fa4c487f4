#pragma once

// Number of the block along y. A grid holds 65,535 along y, so longer ones go on along z.
__device__ __forceinline__ int block_y() { return blockIdx.z * gridDim.y + blockIdx.y; }

// Offset of element (row, column); 64 bits, because row * ld passes 2^31 in large matrices.
template <bool COLUMN_MAJOR>
__device__ __forceinline__ long long at(int row, int column, int ld) {
  return COLUMN_MAJOR ? static_cast<long long>(column) * ld + row
                      : static_cast<long long>(row) * ld + column;
}

// Element (row, column) of a rows x columns matrix, or the zero that ragged tiles are padded with.
template <bool COLUMN_MAJOR>
__device__ __forceinline__ float element_or_zero(const float* matrix, int row, int column, int rows,
                                                 int columns, int ld) {
  return row < rows && column < columns ? matrix[at<COLUMN_MAJOR>(row, column, ld)] : 0.0f;
}
