"""Faults to plant in the golden kernels, one at a time, and how those are launched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ci.simulator.sink import (
    READ_AFTER_WRITE,
    READ_EARLY,
    UNINITIALISED,
    WRITE_AFTER_READ,
    WRITE_AFTER_WRITE,
)
from tests.simulator.golden_kernels import Triple, arguments_of
from tests.simulator.ncu_golden import GOLDEN

SUITE = (GOLDEN / "suite.cu").read_text()
_OUT_OF_BOUNDS_READ = "out-of-bounds read"
_OUT_OF_BOUNDS_WRITE = "out-of-bounds write"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """What is wrong with a kernel, and what must be said about it."""

    name: str
    kernel: str
    old: str
    """Piece of the source, in one place of it."""
    new: str
    """What stands there instead."""
    found: frozenset[tuple[str, str]]
    """Kind of each finding, and a piece of its source line."""


FAULTS = [
    Fault(
        name="no barrier after a tile is used",
        kernel="mm_tiled16",
        old="#ifndef FAULT_NO_SYNC2",
        new="#if 0",
        found=frozenset({(WRITE_AFTER_READ, "As[ty][tx]=")}),
    ),
    Fault(
        name="no barrier before a tile is used",
        kernel="mm_tiled16",
        old="Bs[ty][tx]=(kb<K&&col<N)?B[kb*N+col]:0.f;\n    __syncthreads();",
        new="Bs[ty][tx]=(kb<K&&col<N)?B[kb*N+col]:0.f;\n",
        found=frozenset({(READ_AFTER_WRITE, "s+=As[ty][k]*Bs[k][tx]")}),
    ),
    Fault(
        name="no barrier in a tree reduction",
        kernel="red_smem",
        old="#ifndef FAULT_RED",
        new="#if 0",
        found=frozenset({(READ_AFTER_WRITE, "s[t]+=s[t+k]")}),
    ),
    Fault(
        name="a wait for one group too few",
        kernel="mm_cpasync",
        old="#ifdef FAULT_WAIT",
        new="#if 1",
        found=frozenset({(READ_EARLY, "float b=Bs[cur][k][tx]"), (READ_EARLY, "acc[i]+=As[cur]")}),
    ),
    Fault(
        name="no barrier before the next copy",
        kernel="mm_cpasync",
        old="acc[i]+=As[cur][ty*4+i][k]*b; }\n    __syncthreads();",
        new="acc[i]+=As[cur][ty*4+i][k]*b; }\n",
        found=frozenset({(WRITE_AFTER_READ, "cp.async.cg.shared.global")}),
    ),
    Fault(
        name="no barrier after the tiles of a tensor-core product are filled",
        kernel="mm_mma",
        old="&B[(k0+r)*N+bc+c]; }\n    __syncthreads();",
        new="&B[(k0+r)*N+bc+c]; }\n",
        found=frozenset(
            {(READ_AFTER_WRITE, "m8n8.x4.shared.b16"), (READ_AFTER_WRITE, "m8n8.x2.trans")}
        ),
    ),
    Fault(
        name="matrix rows from another part of the warp",
        kernel="mm_mma",
        old="smem_u32(&As[wm+i*16+(lane&15)]",
        new="smem_u32(&As[wm+i*16+(lane>>3)*8+(lane&15)]",
        found=frozenset(
            {
                (UNINITIALISED, "m8n8.x4.shared.b16"),
                (_OUT_OF_BOUNDS_READ, "m8n8.x4.shared.b16"),
            }
        ),
    ),
    Fault(
        name="no barrier between the sums of the warps and their use",
        kernel="scan_warp",
        old="ws[l]=u; } __syncthreads();",
        new="ws[l]=u; }",
        found=frozenset({(WRITE_AFTER_READ, "ws[l]=u;")}),
    ),
    Fault(
        name="a shared counter without an atomic",
        kernel="hist",
        old="atomicAdd(&h[in[i]],1u)",
        new="h[in[i]]+=1u",
        found=frozenset(
            (kind, "h[in[i]]+=1u")
            for kind in (READ_AFTER_WRITE, WRITE_AFTER_READ, WRITE_AFTER_WRITE)
        ),
    ),
    Fault(
        name="a barrier in a branch",
        kernel="red_shfl",
        old="part[threadIdx.x>>5]=s; __syncthreads();",
        new="{ part[threadIdx.x>>5]=s; __syncthreads(); }",
        found=frozenset({("divergent barrier", "part[threadIdx.x>>5]=s")}),
    ),
    Fault(
        name="a guard that is one too wide",
        kernel="stencil5",
        old="#ifdef FAULT_OOB",
        new="#if 1",
        found=frozenset(
            (kind, "out[y*w+x]=0.5f*c") for kind in (_OUT_OF_BOUNDS_READ, _OUT_OF_BOUNDS_WRITE)
        ),
    ),
    Fault(
        name="a loop that runs once too often",
        kernel="mm_naive",
        old="for(int k=0;k<K;++k) s+=A[row*K+k]*B[k*N+col]; C[row*N+col]=s; }\n}\n"
        'extern "C" __global__ void mm_naive_uncoal',
        new="for(int k=0;k<=K;++k) s+=A[row*K+k]*B[k*N+col]; C[row*N+col]=s; }\n}\n"
        'extern "C" __global__ void mm_naive_uncoal',
        found=frozenset({(_OUT_OF_BOUNDS_READ, "k<=K")}),
    ),
    Fault(
        name="a shared array one row too small",
        kernel="tr_pad",
        old="__shared__ float t[32][32+P];",
        new="__shared__ float t[31][32+P];",
        found=frozenset({(_OUT_OF_BOUNDS_WRITE, "t[threadIdx.y+j][threadIdx.x]=")}),
    ),
    Fault(
        name="a vector load that begins one element late",
        kernel="mm_reg",
        old="&A[(br+ar)*K+k0+ac]);",
        new="&A[(br+ar)*K+k0+ac+1]);",
        found=frozenset({("misaligned read", "float4 a="), (_OUT_OF_BOUNDS_READ, "float4 a=")}),
    ),
]
LAUNCHES: dict[str, tuple[Triple, Triple]] = {
    "mm_naive": ((2, 8, 1), (32, 8, 1)),
    "mm_tiled16": ((4, 4, 1), (16, 16, 1)),
    "mm_cpasync": ((4, 4, 1), (256, 1, 1)),
    "mm_mma": ((1, 1, 1), (128, 1, 1)),
    "mm_reg": ((1, 1, 1), (256, 1, 1)),
    "red_smem": ((16, 1, 1), (256, 1, 1)),
    "red_shfl": ((4, 1, 1), (256, 1, 1)),
    "hist": ((2, 1, 1), (256, 1, 1)),
    "scan_warp": ((2, 1, 1), (256, 1, 1)),
    "stencil5": ((3, 13, 1), (32, 8, 1)),
    "tr_pad": ((2, 2, 1), (32, 8, 1)),
}


def arguments(kernel: str) -> Sequence[np.ndarray | np.generic]:
    """Return the arguments of a launch in ``LAUNCHES``."""
    if kernel == "hist":
        values = np.random.default_rng(1).integers(0, 256, 4096, dtype=np.uint8)
        return [values, np.zeros(256, np.uint32), np.int32(4096)]
    if kernel == "scan_warp":
        return [np.ones(512, np.int32), np.zeros(512, np.int32), np.int32(512)]
    return arguments_of(kernel, 128 if kernel in {"mm_cpasync", "stencil5"} else 64)


def dynamic_shared_bytes(kernel: str) -> int:
    """Return the dynamic shared memory of a launch in ``LAUNCHES``."""
    return 16_384 if kernel == "mm_cpasync" else 0
