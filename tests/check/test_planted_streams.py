"""Broken copies of the stages that stream, project and attend: each must be found, and named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.check.test_planted_kernels import Fault, sentences_about

FAULTS = (
    Fault(
        name="gemv: the tail of a row behind the vectors is dropped",
        source="gemv/03_vectorized.cu",
        old="for (int k = 8 * vectors + lane; k < K; k += 32) {",
        new="for (int k = 8 * vectors + lane; k < K && vectors == 0; k += 32) {",
        said="is the result of the first 2040 terms of K = 2043",
    ),
    Fault(
        name="gemv: a lane forgets a step of the butterfly",
        source="gemv/02_warp_per_row.cu",
        included="include/warp.cuh",
        old="for (int distance = 16; distance > 0; distance /= 2) {\n    value +=",
        new="for (int distance = 8; distance > 0; distance /= 2) {\n    value +=",
        said="elements wrong",
    ),
    Fault(
        name="gemv: rows are read K apart, not ldw",
        source="gemv/02_warp_per_row.cu",
        old="W[at<false>(row, k, ldw)]",
        new="W[at<false>(row, k, K)]",
        said="this is the result with W read with leading dimension",
    ),
    Fault(
        name="gemv: vectors are taken although x is not aligned",
        source="gemv/03_vectorized.cu",
        old="reinterpret_cast<unsigned long long>(x) % 16 == 0;",
        new="true;",
        said="misaligned",
    ),
    Fault(
        name="gemv: bfloat16 halves are swapped",
        source="gemv/03_vectorized.cu",
        included="include/bfloat16.cuh",
        old="to[0] = low_half(v.x);\n  to[1] = high_half(v.x);",
        new="to[1] = low_half(v.x);\n  to[0] = low_half(v.x);",
        said="elements wrong",
    ),
    Fault(
        name="gemv_int4: a group is 64 weights, not 128",
        source="gemv_int4/01_warp_per_row.cu",
        old="w / 16",
        new="w / 8",
        said="out-of-bounds",
    ),
    Fault(
        name="gemv_int4: the zero point is 7",
        source="gemv_int4/01_warp_per_row.cu",
        old="15u) - 8;",
        new="15u) - 7;",
        said="elements wrong",
    ),
    Fault(
        name="gemv_int4: weights pair up with neighbours of x",
        source="gemv_int4/03_tensor_core.cu",
        old="b[0] = __byte_perm(f[0], f[2], 0x5410);",
        new="b[0] = f[0];",
        said="elements wrong",
    ),
    Fault(
        name="gemv_int4: the lower half of a row's quad is added twice",
        source="gemv_int4/03_tensor_core.cu",
        old="sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);",
        new="sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);",
        said="elements wrong",
    ),
    Fault(
        name="softmax: the largest element is not taken off",
        source="softmax/02_warp.cu",
        included="include/softmax.cuh",
        old="return largest == minus_infinity() ? 0.0f : largest;",
        new="return 0.0f;",
        said="got 0, want",
    ),
    Fault(
        name="softmax: a row of -inf becomes NaN (flashinfer#1178)",
        source="softmax/01_shared.cu",
        included="include/softmax.cuh",
        old="return largest == minus_infinity() ? 0.0f : largest;",
        new="return largest;",
        said="got nan, want 0",
    ),
    Fault(
        name="softmax: the barrier in the tree is dropped",
        source="softmax/01_shared.cu",
        old="part[threadIdx.x + half]);\n    }\n    __syncthreads();",
        new="part[threadIdx.x + half]);\n    }",
        said="race",
    ),
    Fault(
        name="softmax: padding is 0, not -inf",
        source="softmax/03_registers.cu",
        included="include/softmax_rows.cuh",
        old="v[i][j] = c + j < C ? x[c + j] : minus_infinity();",
        new="v[i][j] = c + j < C ? x[c + j] : 0.0f;",
        said="elements wrong",
    ),
    Fault(
        name="softmax: the second chunk of a long row is forgotten",
        source="softmax/03_registers.cu",
        included="include/softmax_rows.cuh",
        old="if (C > chunk) {",
        new="if (C > 2 * chunk) {",
        said="elements wrong",
    ),
    Fault(
        name="transpose: the guard of the store is the one of the load",
        source="transpose/03_padded.cu",
        old="if (row < C && column < R) Y",
        new="if (row < R && column < C) Y",
        said="out-of-bounds",
    ),
    Fault(
        name="transpose: the tile is stored as it was loaded",
        source="transpose/03_padded.cu",
        old="= tile[threadIdx.x][i];",
        new="= tile[i][threadIdx.x];",
        said="elements wrong",
    ),
    Fault(
        name="transpose: Y is written with the leading dimension of X",
        source="transpose/01_naive.cu",
        old="column, row, ldy)",
        new="column, row, ldx)",
        said="written with leading dimension",
    ),
    Fault(
        name="projection: W is read as [in, out]",
        source="projection_fp32/01_shared_tile.cu",
        old="element_or_zero<false>(W, n0 + load_row, k0 + load_k, N, K, ldw)",
        new="element_or_zero<false>(W, k0 + load_k, n0 + load_row, K, N, ldw)",
        said="elements wrong",
    ),
    Fault(
        name="projection: the bias is forgotten",
        source="projection_fp32/03_block_tile_2d.cu",
        old="= acc[i][j] + b[column];",
        new="= acc[i][j];",
        said="elements wrong",
    ),
    Fault(
        name="projection: the bias belongs to rows",
        source="projection_fp32/04_vectorized.cu",
        old="acc[i][j] += column < N ? b[column] : 0.0f;",
        new="acc[i][j] += m0 + thread_row + i < N ? b[m0 + thread_row + i] : 0.0f;",
        said="elements wrong",
    ),
    Fault(
        name="attention: the causal mask hides the diagonal",
        source="attention/01_shared_tile.cu",
        included="include/attention.cuh",
        old="return mask == CAUSAL ? i + 1 : S;",
        new="return mask == CAUSAL ? i : S;",
        said="elements wrong",
    ),
    Fault(
        name="attention: the causal mask shows one key too many",
        source="attention/04_vectorized.cu",
        included="include/attention.cuh",
        old="return mask == CAUSAL ? i + 1 : S;",
        new="return mask == CAUSAL ? min(i + 2, S) : S;",
        said="elements wrong",
    ),
    Fault(
        name="attention: NaN leaks from under the mask (pytorch#101967)",
        source="attention/05_double_buffer.cu",
        included="include/attention.cuh",
        old="return GUARD && weight == 0.0f ? acc : acc + weight * value;",
        new="return acc + weight * value;",
        said="got nan, want",
    ),
    Fault(
        name="attention: a masked key's NaN reaches the score",
        source="attention/02_block_tile_1d.cu",
        included="include/attention.cuh",
        old="return added == minus_infinity() ? added : score + added;",
        new="return score + added;",
        said="got nan, want",
    ),
    Fault(
        name="attention: the scale is applied after the mask",
        source="attention/03_block_tile_2d.cu",
        old="masked(scale * acc[i][j], Mask, row, column, S, mask)",
        new="scale * masked(acc[i][j], Mask, row, column, S, mask)",
        said="elements wrong",
    ),
    Fault(
        name="attention: the mask is read although there is none",
        source="attention/03_block_tile_2d.cu",
        included="include/attention.cuh",
        old="if (mask != ADDITIVE) return score;",
        new="if (mask == CAUSAL) return score;",
        said="NaN as if the kernel had read Mask",
    ),
    Fault(
        name="attention: the barrier before the next tile is dropped",
        source="attention/05_double_buffer.cu",
        old="      k.store(Ks[now]);\n      __syncthreads();",
        new="      k.store(Ks[now]);",
        said="race",
    ),
    Fault(
        name="attention: heads are S rows of the wrong batch apart",
        source="attention/04_vectorized.cu",
        old="const float* keys = &K[tile.head * S * D];",
        new="const float* keys = &K[tile.head / H * S * D];",
        said="elements wrong",
    ),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_incorrect_and_named(fault: Fault, tmp_path: Path) -> None:
    told = sentences_about(fault, tmp_path)
    assert any(fault.said in sentence for sentence in told), told
