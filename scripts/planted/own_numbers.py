"""Edits of kernels of their own that change numbers only, and what the wrong elements share."""

from __future__ import annotations

from scripts.planted.catalogue import Planted

EVERY = "every element"


def _numbers(name: str, source: str, old: str, new: str, shares: str) -> Planted:
    return Planted(name=name, source=source, old=old, new=new, shares=shares)


NUMBERS_ONLY = (
    _numbers("pipeline: the last, partial tile is left out", "async/pipelined.cu",
             "(K + BK - 1) / BK", "K / BK", "is dropped"),
    _numbers("pipeline: a thread writes columns 8 apart that it computed side by side",
             "async/pipelined.cu", "n0 + 4 * tx + j] =", "n0 + tx + 8 * j] =", "columns 1 to 30"),
    _numbers("smoothing: the first element counts as outside", "async/smoothed.cu",
             "first + i >= 0", "first + i >= 1", "all in columns 0 to 1"),
    _numbers("fragments: the lower rows are written over the upper ones", "matrix/fragments.cu",
             "C[(row + 8) * N + column] = acc[j][2];\n"
             "    if (row + 8 < M) C[(row + 8) * N + column + 1]",
             "C[row * N + column] = acc[j][2];\n    if (row + 8 < M) C[row * N + column + 1]",
             EVERY),
    _numbers("fragments: B is loaded without .trans", "matrix/fragments.cu",
             "m8n8.x2.trans.shared", "m8n8.x2.shared", EVERY),
    _numbers("fragments: A's second and third register are exchanged", "matrix/fragments.cu",
             '"r"(a[0]), "r"(a[1]), "r"(a[2])', '"r"(a[0]), "r"(a[2]), "r"(a[1])', EVERY),
    _numbers("fragments: B's registers are exchanged", "matrix/fragments.cu",
             '"r"(b[0]), "r"(b[1]));', '"r"(b[1]), "r"(b[0]));', EVERY),
    _numbers("fragments: lanes 8 to 15 give ldmatrix the rows of lanes 0 to 7",
             "matrix/fragments.cu", "As[warp_row + lane % 16]", "As[warp_row + lane % 8]",
             "all in rows 8 to 12"),
    _numbers("wmma: B's fragment is declared column-major", "matrix/warp_matrix.cu",
             "matrix_b, 16, 16, 16, __half, row_major", "matrix_b, 16, 16, 16, __half, col_major",
             EVERY),
    _numbers("tree: the grid-stride loop steps by the block", "reduction/tree.cu",
             "i += gridDim.x * THREADS", "i += THREADS", "all in columns 0 to 1"),
    _numbers("last block: one block's sum is left out", "reduction/last_block.cu",
             "block < gridDim.x;", "block < gridDim.x - 1;", EVERY),
    _numbers("block scan: the lane at just the distance is left out", "scan/block_scan.cu",
             "lane >= distance", "lane > distance", "all in columns 1 to 127"),
    _numbers("block scan: a warp adds its own total, too", "scan/block_scan.cu",
             "before < warp", "before <= warp", EVERY),
    _numbers("two buffers: sums are kept in 16 bits", "scan/two_buffers.cu",
             "__shared__ unsigned buffer", "__shared__ unsigned short buffer",
             "all in columns 31 to 63"),
    _numbers("chained scan: a block hands on its own sum only", "scan/chained.cu",
             "= carry + s[31];", "= s[31];", "all in rows 2 to 4"),
    _numbers("leaders: a leader counts itself only", "histogram/leaders.cu",
             "__popc(peers));", "1u);", EVERY),
    _numbers("line: the last neighbour is left out", "stencil/line.cu",
             "d <= 2 * RADIUS", "d < 2 * RADIUS", "all in columns 0 to 197"),
    _numbers("plane: the last row but one does not see the last", "stencil/plane.cu",
             "row + 1 < H ?", "row + 2 < H ?", "all in row 17"),
    _numbers("window: one row too few is summed", "stencil/window.cu",
             "tap < TAPS; ++tap", "tap < TAPS - 1; ++tap", "all in rows 4 to"),
    _numbers("partition: the positive ones come backwards", "compaction/partition.cu",
             "keep ? __popc(kept & below)", "keep ? __popc(kept >> lane >> 1)",
             "all in columns 0 to"),
    _numbers("cursor: the cursor moves by 1, however many are written", "compaction/cursor.cu",
             "atomicAdd(cursor, __popc(kept))", "atomicAdd(cursor, 1u)", "all in columns"),
    _numbers("groups: the first distance is left out", "lanes/groups.cu",
             "distance = 4", "distance = 2", EVERY),
    _numbers("rows: sums are kept in half precision", "lanes/rows.cu",
             "typedef float Sum", "typedef __half Sum", EVERY),
    _numbers("centred: the sums of three warps are added", "dynamic/centred.cu",
             "part.z + part.w", "part.z", EVERY),
)  # fmt: skip
