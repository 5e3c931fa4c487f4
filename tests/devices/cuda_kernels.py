"""Kernels that show one thing each of the GPU device, built without a GPU."""

from __future__ import annotations

from ci.devices.errors import DeviceError
from kernels.build import BuiltKernel, BuiltStage, Cubin
from kernels.nvrtc import compile_text

ARCH = "sm_90"
KERNELS = ("put", "far", "spin", "reverse", "ranks", "tile")

SOURCE = r"""
extern "C" __global__ void put(float* out, int index, float value) { out[index] = value; }

extern "C" __global__ void far(float* out) { out[1ll << 40] = 1.0f; }

extern "C" __global__ void spin(float* out, long long nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
  out[0] = 1.0f;
}

// Needs 4 * n bytes of dynamic shared memory.
extern "C" __global__ void reverse(float* data, int n) {
  extern __shared__ float values[];
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = data[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) data[i] = values[n - 1 - i];
}

extern "C" __global__ void __cluster_dims__(2, 1, 1) ranks(int* out) {
  unsigned rank, size;
  asm("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %cluster_nctarank;" : "=r"(size));
  out[2 * blockIdx.x] = rank;
  out[2 * blockIdx.x + 1] = size;
}

struct alignas(128) TensorMap { unsigned long long words[16]; };

// Copies the 64 x 64 box at (column, row) through shared memory.
extern "C" __global__ void tile(const __grid_constant__ TensorMap map, int column, int row,
                                float* out) {
  __shared__ alignas(128) float box[64 * 64];
  __shared__ alignas(8) unsigned long long barrier;
  const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(box));
  const unsigned arrived = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(arrived) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(arrived),
                 "r"(64 * 64 * 4)
                 : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
        "l"(&map), "r"(column), "r"(row), "r"(arrived)
        : "memory");
  }
  __syncthreads();
  unsigned done = 0;
  while (!done) {
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(arrived)
        : "memory");
  }
  for (int i = threadIdx.x; i < 64 * 64; i += blockDim.x) out[i] = box[i];
}
"""


def build() -> BuiltStage:
    """Return the kernels as one stage, a variant a kernel."""
    compiled = compile_text(
        SOURCE, "cuda_kernels.cu", arch=ARCH, options=("--std=c++17",), expressions=()
    )
    kernels = {name: BuiltKernel(variant=name, expression=name, symbol=name) for name in KERNELS}
    cubin = Cubin(arch=ARCH, data=compiled.data, log=compiled.log, kernels=kernels, tile={})
    return BuiltStage(
        ladder="devices",
        stage="cuda_kernels",
        source_digest="",
        text=SOURCE,
        ptx="",
        ptx_kernels={},
        cubins={ARCH: cubin},
        tile={},
    )


def last_words(kernel: str, *arguments: object) -> None:
    """Run a kernel that breaks the device, then another, and print what each raised.

    For a process of its own.
    """
    import numpy as np  # noqa: PLC0415

    from ci.devices import cuda  # noqa: PLC0415
    from ci.devices.protocol import Buffer, StepLaunch  # noqa: PLC0415
    from kernels.spec import Launch  # noqa: PLC0415

    cuda.LAUNCH_LIMIT_S = 0.5
    device = cuda.CudaDevice()
    built = build()
    launch = Launch(grid=(1, 1, 1), block=(1, 1, 1))
    for name, rest in ((kernel, arguments), ("put", (np.int32(0), np.float32(1)))):
        out = Buffer(name="out", data=np.zeros(8, dtype=np.float32))
        try:
            steps = [StepLaunch(variant=name, launch=launch, arguments=(out, *rest))]  # type: ignore[arg-type]
            device.run(built, steps, count=False)
        except DeviceError as error:
            print(f"{type(error).__name__}: {error}", flush=True)  # noqa: T201
