"""Faults planted in real stages, one edit each; written before any detector was run on them."""

from __future__ import annotations

from dataclasses import dataclass

HAZARD, NUMBERS = "hazard", "numbers"


@dataclass(frozen=True, kw_only=True, slots=True)
class Planted:
    """One edit of one place, and what it should be found by."""

    name: str
    source: str
    """The stage, as ``ladder/stage.cu``."""
    old: str
    """A text that the edited file holds once."""
    new: str
    file: str = ""
    """The edited file if it is a header, below the suite's folder."""
    kind: str = ""
    """A word of the finding's kind, for hazards; empty: only numbers are wrong."""
    at: tuple[str, ...] = ()
    """Texts of which the line that a finding should name holds one."""
    shares: str = ""
    """What a sentence about the wrong numbers must say, where that is written down beforehand."""

    @property
    def expected(self) -> str:
        """Return ``hazard`` or ``numbers``."""
        return HAZARD if self.kind else NUMBERS


SOFTMAX_ROWS = "include/softmax_rows.cuh"
ATTENTION = "include/attention.cuh"
VECTOR = "include/vector.cuh"
WARP = "include/warp.cuh"
BLAS = "include/blas.cuh"
LAYOUT = "include/layout.cuh"
RING = "gemv_int4/04_async_copies.cu"
SYNC = "    __syncthreads();\n"


def _race(name: str, source: str, old: str, new: str, *at: str) -> Planted:
    return Planted(name=name, source=source, old=old, new=new, kind="race", at=at)


def _bounds(name: str, source: str, old: str, new: str, *at: str, file: str = "") -> Planted:
    return Planted(
        name=name, source=source, old=old, new=new, file=file, kind="out-of-bounds", at=at
    )


def _numbers(name: str, source: str, old: str, new: str, file: str = "") -> Planted:
    return Planted(name=name, source=source, old=old, new=new, file=file)


CATALOGUE = (
    # Races: a barrier is gone, or a second thread writes.
    _race("2D tile: no barrier after the loads", "sgemm/06_block_tile_2d.cu",
          SYNC + "    for (int k = 0", "    for (int k = 0", "a[i] = As", "b[j] = Bs"),
    _race("2D tile: no barrier before the next loads", "sgemm/06_block_tile_2d.cu",
          "      }\n    }\n" + SYNC, "      }\n    }\n", "As[row][k] =", "Bs[k][column] ="),
    _race("warp tile: no barrier after the loads", "sgemm/09_warp_tile.cu",
          SYNC + "#pragma unroll", "#pragma unroll", "copy4(&a[i]", "copy4(&b[j]", "float4*>(to)"),
    _race("double buffer: the same buffer is filled that is read", "sgemm/10_double_buffer.cu",
          "    now ^= 1;\n", "", "tile[k", "float4*>(&tile"),
    _race("double buffer: no barrier after the stores", "sgemm/10_double_buffer.cu",
          "(Bs[now], b_next);\n      __syncthreads();", "(Bs[now], b_next);",
          "copy4(&a[i]", "copy4(&b[j]", "float4*>(to)"),
    _race("1D tile: no barrier before the next loads", "sgemm/05_block_tile_1d.cu",
          "      }\n    }\n" + SYNC, "      }\n    }\n", "As[a_row]", "Bs[b_k]"),
    _race("projection: no barrier after the loads", "projection_fp32/02_block_tile_1d.cu",
          SYNC + "#pragma unroll", "#pragma unroll", "w = Ws[k]", "Xs[thread_row + i]"),
    _race("projection: no barrier before the next loads", "projection_fp32/04_vectorized.cu",
          "      }\n    }\n" + SYNC, "      }\n    }\n", "tile[k + 0]", "tile[k + 1]",
            "tile[k + 2]",
          "tile[k + 3]"),
    _race("transpose: no barrier between load and store", "transpose/02_tiled.cu",
          "  __syncthreads();\n", "", "tile[threadIdx.x][i]"),
    _race("transpose: vectors, no barrier", "transpose/04_vectorized.cu",
          "  __syncthreads();\n", "", "tile[four + 0][i]"),
    _race("softmax: no barrier before the tree", "softmax/01_shared.cu",
          "seen;\n  __syncthreads();", "seen;", "merged(part"),
    _race("softmax: the tree's halves overlap", "softmax/01_shared.cu",
          "if (threadIdx.x < half)", "if (threadIdx.x <= half)", "merged(part"),
    Planted(name="softmax: a warp's part is read before all are written",
            source="softmax/03_registers.cu", file=SOFTMAX_ROWS,
            old="= value;\n  __syncthreads();\n  value =", new="= value;\n  value =",
            kind="race", at=("part[threadIdx.x % 32]",)),
    Planted(name="softmax: the next maximum overwrites parts that are still read",
            source="softmax/03_registers.cu", file=SOFTMAX_ROWS,
            old="  __syncthreads();\n  return value;", new="  return value;",
            kind="race", at=("part[threadIdx.x / 32] = value",)),
    _race("attention: no barrier after the score tiles", "attention/01_shared_tile.cu",
          SYNC + "    for (int k = 0; k < TILE; ++k) {\n      acc += Qs",
          "    for (int k = 0; k < TILE; ++k) {\n      acc += Qs", "acc += Qs"),
    _race("attention: no barrier before the next value tiles", "attention/02_block_tile_1d.cu",
          "thread_column);\n    }\n" + SYNC, "thread_column);\n    }\n", "Ps[threadIdx.x / BK]",
          "Vs[value_key]"),
    _race("attention: value tiles, one buffer for two", "attention/05_double_buffer.cu",
          "      p.store(Ps[now]);", "      p.store(Ps[now ^ 1]);", "tile[k(n)"),
    _race("int4: the parts of the warps are read too early", "gemv_int4/03_tensor_core.cu",
          "  __syncthreads();\n", "", "total += part"),
    # Bounds.
    _bounds("naive: rows are not guarded", "sgemm/01_naive.cu",
            "row >= M || ", "", "acc += A", "float old", "*c ="),
    _bounds("coalesced: one k too many", "sgemm/02_coalesced.cu",
            "k < K;", "k <= K;", "acc += A"),
    _bounds("tile: the guard of a load takes one row too many", "sgemm/04_shared_tile_32.cu",
            "return row < rows &&", "return row <= rows &&", "return row <= rows", file=LAYOUT),
    _bounds("vectors are guarded by their first column only", "sgemm/07_vectorized.cu",
            "c_vectors = made_of_vectors(C, N, ldc)", "c_vectors = ldc % 4 == 0",
            "*reinterpret_cast<float4*>(c)"),
    _bounds("2D tile: write-back without a guard of the columns",
            "projection_fp32/03_block_tile_2d.cu",
            "row < M && column < N) Y", "row < M) Y", "acc[i][j] + b[column]"),
    _bounds("gemv: the last block has rows that are not there", "gemv/02_warp_per_row.cu",
            "  if (row >= M) return;\n", "", "sum +=", "y[row]"),
    _bounds("gemv: one vector too many", "gemv/03_vectorized.cu",
            "v < vectors; v += 32)", "v <= vectors; v += 32)", "product8(__ldcs"),
    _bounds("int4: rows past the end are read", "gemv_int4/02_vectorized.cu",
            "      const int row = min(row0 + r, M - 1);\n      loaded",
            "      const int row = row0 + r;\n      loaded", "loaded[r]", "scale[r]"),
    _bounds("int4: rows past the end are written", "gemv_int4/02_vectorized.cu",
            "lane == 0 && row0 + r < M", "lane == 0", "y[row0 + r]"),
    _bounds("int4: a group too many", "gemv_int4/03_tensor_core.cu",
            "? K / 512 : 0", "? (K + 511) / 512 : 0", "loaded[g][r]", "scale[r]", "b[0]", "v ="),
    _bounds("softmax: a vector past the row", "softmax/02_warp.cu",
            "c < C; c += 32) see", "c < C + 1; c += 32) see", "see(seen"),
    _bounds("softmax: rows past the end are written", "softmax/03_registers.cu",
            "row < R);", "true);", "y[c"),
    _bounds("transpose: columns are not guarded", "transpose/01_naive.cu",
            " || column >= C", "", "Y[at"),
    _bounds("transpose: store past the last row", "transpose/04_vectorized.cu",
            "if (row >= C) break;", "if (row > C) break;", "to[j]", "float4*>(to)"),
    _bounds("transpose: shared tile one row short", "transpose/02_tiled.cu",
            "tile[TILE][TILE];", "tile[TILE - 1][TILE];", "tile[i][threadIdx.x]",
            "tile[threadIdx.x][i]"),
    _bounds("attention: scores of keys that are not there", "attention/01_shared_tile.cu",
            "i < S && j < S", "i < S", "masked(scale"),
    _bounds("attention: queries past the end are written", "attention/03_block_tile_2d.cu",
            "      if (row < S) O", "      O", "= acc[i][j]"),
    _bounds("attention: one mask row per head", "attention/04_vectorized.cu",
            "Mask[at<false>(i, j, S)]", "Mask[at<false>(S + i, j, S)]", "Mask[at", file=ATTENTION),
    # Alignment.
    Planted(name="vectors wherever ld allows", source="sgemm/08_autotuned.cu", file=VECTOR,
            old="% 16 == 0 && ld % 4 == 0;", new="% 16 == 0;", kind="misaligned",
            at=("reinterpret_cast<const float4*>", "reinterpret_cast<float4*>")),
    Planted(name="softmax: vectors of Y without asking", source="softmax/03_registers.cu",
            old=" && made_of_vectors(Y, C, ldy);", new=";", kind="misaligned",
            at=("float4*>(&y[c])",)),
    Planted(name="transpose: vectors of Y wherever X has them", source="transpose/04_vectorized.cu",
            old="made_of_vectors(Y, R, ldy)", new="x_vectors", kind="misaligned",
            at=("float4*>(to)",)),
    Planted(name="gemv: rows of any pitch as vectors", source="gemv/03_vectorized.cu",
            old=" && ldw % 8 == 0 &&", new=" &&", kind="misaligned", at=("__ldcs",)),
    # Initialisation.
    Planted(name="tile: half of B is never loaded", source="sgemm/03_shared_tile_16.cu",
            old="    Bs[b_k][b_column] =", new="    if (b_k < 8) Bs[b_k][b_column] =",
            kind="uninitialised", at=("acc +=",)),
    Planted(name="double buffer: the first tile of B is not stored",
            source="sgemm/10_double_buffer.cu",
            old="(As[0], a_next);\n  store_tile<BN, THREADS, !B_COL>(Bs[0], b_next);",
            new="(As[0], a_next);", kind="uninitialised", at=("copy4(&b[j]", "float4*>(to)")),
    Planted(name="softmax: the first warp leaves its part out", source="softmax/03_registers.cu",
            file=SOFTMAX_ROWS, old="if (threadIdx.x % 32 == 0) part",
            new="if (threadIdx.x % 32 == 0 && threadIdx.x > 0) part", kind="uninitialised",
            at=("part[threadIdx.x % 32]",)),
    Planted(name="int4: only the upper rows are shared", source="gemv_int4/03_tensor_core.cu",
            old="    part[warp][quad + 8] = sum[1];\n", new="", kind="uninitialised",
            at=("total += part",)),
    Planted(name="attention: K's tile is only half filled", source="attention/03_block_tile_2d.cu",
            old="    load_transposed<BK, BN>(Ks, keys, n0, d0, S, D);",
            new="    load_transposed<BK, BN / 2>(Ks, keys, n0, d0, S, D);", kind="uninitialised",
            at=("b[j] = Bs",)),
    # Barriers and shuffles.
    Planted(name="softmax: a barrier for half the block", source="softmax/01_shared.cu",
            old="    }\n    __syncthreads();\n  }", new="    __syncthreads();\n    }\n  }",
            kind="barrier", at=("__syncthreads",)),
    Planted(name="gemv: the sum of a warp after lanes have left", source="gemv/02_warp_per_row.cu",
            old="  if (row >= M) return;\n", new="  if (row >= M || lane >= K) return;\n",
            kind="inactive", at=("__shfl_xor_sync",)),
    Planted(name="softmax: half a warp meets the shuffles", source="softmax/02_warp.cu",
            old="#pragma unroll\n  for (int distance = 16",
            new="  if (lane < 16)\n  for (int distance = 16", kind="inactive",
            at=("__shfl_xor_sync",)),
    # Numbers only.
    _numbers("the lanes of a column are counted in rows", "sgemm/09_warp_tile.cu",
             "lane % (WSUBN / TN) * TN", "lane / (WSUBN / TN) * TN"),
    _numbers("a sub-tile is stored over another", "sgemm/09_warp_tile.cu",
             "const int row = m0 + thread_row + i / TM * WSUBM + i % TM;",
             "const int row = m0 + thread_row + i % TM;"),
    _numbers("one k of every step is forgotten", "sgemm/06_block_tile_2d.cu",
             "for (int k = 0; k < BK; ++k) {\n      float a",
             "for (int k = 1; k < BK; ++k) {\n      float a"),
    _numbers("the accumulator is not cleared between tiles", "sgemm/05_block_tile_1d.cu",
             "acc[i] += As", "acc[i] = As"),
    _numbers("vectors are transposed in the wrong order", "sgemm/07_vectorized.cu",
             "tile[k + 1][outer] = v.y;\n    tile[k + 2][outer] = v.z;",
             "tile[k + 1][outer] = v.z;\n    tile[k + 2][outer] = v.y;"),
    _numbers("the last step is skipped", "sgemm/10_double_buffer.cu",
             "for (int k0 = 0; k0 < K; k0 += BK) {\n    const bool more",
             "for (int k0 = 0; k0 < K - 1; k0 += BK) {\n    const bool more"),
    _numbers("alpha scales C too", "sgemm/02_coalesced.cu",
             "*c = alpha * product + beta * old;", "*c = alpha * (product + beta * old);", BLAS),
    _numbers("alpha = 0 gives what was there", "sgemm/04_shared_tile_32.cu",
             "  *c = alpha * product + beta * old;",
             "  if (alpha != 0.0f) *c = alpha * product + beta * old;", BLAS),
    _numbers("row and column of a grid are mixed up", "sgemm/08_autotuned.cu",
             "threadIdx.x / (BN / TN) * TM", "threadIdx.x / (BM / TM) * TM"),
    _numbers("a row of A for the row of C below", "sgemm/03_shared_tile_16.cu",
             "As[thread_row][k]", "As[(thread_row + 1) % BM][k]"),
    _numbers("gemv: lanes take every 31st element", "gemv/02_warp_per_row.cu",
             "k += 32", "k += 31"),
    _numbers("gemv: the unrolled part overlaps the rest", "gemv/03_vectorized.cu",
             "v += 32 * UNROLL)", "v += 32 * (UNROLL - 1))"),
    _numbers("gemv: high and low half", "gemv/03_vectorized.cu",
             "return __uint_as_float(word & 0xffff0000u);",
             "return __uint_as_float(word & 0xfff00000u);",
             "include/bfloat16.cuh"),
    _numbers("int4: nibbles from the top", "gemv_int4/01_warp_per_row.cu",
             "word >> (4 * i)", "word >> (28 - 4 * i)"),
    _numbers("int4: the scale of the next group", "gemv_int4/02_vectorized.cu",
             "(row, v / 4, groups)", "(row, min(v / 4 + 1, groups - 1), groups)"),
    _numbers("int4: A's rows are exchanged in the fragment", "gemv_int4/03_tensor_core.cu",
             "{weights2(up, 8 * half), weights2(low, 8 * half),",
             "{weights2(low, 8 * half), weights2(up, 8 * half),"),
    _numbers("int4: bias of the magic number", "gemv_int4/03_tensor_core.cu",
             "__float2bfloat162_rn(-136.0f)", "__float2bfloat162_rn(-128.0f)",
             "include/int4.cuh"),
    _numbers("int4: a quarter of every group", "gemv_int4/03_tensor_core.cu",
             "      for (int w = 0; w < 4; ++w) {", "      for (int w = 0; w < 3; ++w) {"),
    _numbers("softmax: the sum is not rescaled", "softmax/02_warp.cu",
             "seen.sum * expf(seen.largest - base) + expf(x - base)", "seen.sum + expf(x - base)",
             "include/softmax.cuh"),
    _numbers("softmax: half precision", "softmax/03_registers.cu",
             "v[i][j] = expf(v[i][j] - base);",
             "v[i][j] = __int_as_float(__float_as_int(expf(v[i][j] - base)) & 0xffffe000);",
             SOFTMAX_ROWS),
    _numbers("softmax: 1 / sum of a row of -inf", "softmax/03_registers.cu",
             "sum == 0.0f ? 0.0f : 1.0f / sum", "1.0f / sum", "include/softmax.cuh"),
    _numbers("softmax: a row beside its own", "softmax/01_shared.cu",
             "&Y[at<false>(row, 0, ldy)]", "&Y[at<false>(row ^ 1 < R ? row ^ 1 : row, 0, ldy)]"),
    _numbers("transpose: the tile's place is not exchanged", "transpose/03_padded.cu",
             "const int row = column0 + i;\n    const int column = row0 + threadIdx.x;",
             "const int row = row0 + i;\n    const int column = column0 + threadIdx.x;"),
    _numbers("transpose: an element of each vector twice", "transpose/04_vectorized.cu",
             "tile[i][four + 3] = v.w;", "tile[i][four + 3] = v.z;"),
    _numbers("projection: W's tile is not transposed", "projection_fp32/02_block_tile_1d.cu",
             "const float w = Ws[k][thread_column];", "const float w = Ws[thread_column % BK][k];"),
    _numbers("projection: bias of the tile, not of the column", "projection_fp32/01_shared_tile.cu",
             "acc + b[column]", "acc + b[thread_column]"),
    _numbers("attention: no scale", "attention/04_vectorized.cu",
             "const float score = scale * acc[i][j + e];", "const float score = acc[i][j + e];"),
    _numbers("attention: the mask of the transposed place", "attention/02_block_tile_1d.cu",
             "Mask[at<false>(i, j, S)]", "Mask[at<false>(j, i, S)]", ATTENTION),
    _numbers("attention: weights of hidden keys are kept", "attention/05_double_buffer.cu",
             "if (mask != CAUSAL || k0 + BK <= m0 + 1) return;", "return;"),
    _numbers("attention: the softmax sees one key less", "attention/01_shared_tile.cu",
             "softmax_row<VECTORS>(&P[row * S], &P[row * S], seen,",
             "softmax_row<VECTORS>(&P[row * S], &P[row * S], seen - 1,", ATTENTION),
    _numbers("attention: queries of the head before", "attention/02_block_tile_1d.cu",
             "const float* queries = &Q[tile.head * S * D];",
             "const float* queries = &Q[max(tile.head - 1, 0ll) * S * D];"),
    _numbers("attention: V's columns of the first block", "attention/03_block_tile_2d.cu",
             "D + n0 + thread_column + j]", "D + thread_column + j]"),
    # A ring of asynchronous copies.
    Planted(name="int4 ring: one group too few is waited for", source=RING,
            old="wait_for_copies<STAGES - 2>()", new="wait_for_copies<STAGES - 1>()",
            kind="asynchronous", at=("copied[weights_at", "copied[x_at")),
    Planted(name="int4 ring: the first copies are no group of their own", source=RING,
            old="words);\n    end_group();\n  }", new="words);\n  }",
            kind="asynchronous", at=("copied[weights_at", "copied[x_at")),
    Planted(name="int4 ring: the place that is read is copied into", source=RING,
            old="held == 0 ? STAGES - 1 : held - 1", new="held",
            kind="asynchronous", at=("copied[weights_at", "copied[x_at")),
    _race("int4 ring: a lane waits for its own copies alone", RING,
          "  __syncwarp();\n", "", "copied[weights_at", "copied[x_at", "cp.async.cg"),
    _bounds("int4 ring: a chunk past the row", RING,
            "if (ahead < chunks)", "if (ahead <= chunks)", "cp.async.cg"),
    Planted(name="int4 ring: half of x is not copied", source=RING,
            old="  copy16(&place[x_at(lane + 32)], &x[512 * chunk + 8 * (lane + 32)]);\n", new="",
            kind="uninitialised", at=("copied[x_at",)),
    _numbers("int4 ring: upper rows in the place of lower ones", RING,
             "c[0][2] + c[1][2]", "c[0][2] + c[1][0]"),
    _numbers("int4 ring: scales of the chunk before", RING,
             "const int group = 4 * (chunk + WARPS) + place;",
             "const int group = 4 * chunk + place;"),
)  # fmt: skip
"""Every planted fault. Entries are never changed to make them caught."""
