"""The GPU as a device. Everything here needs one, but for the build of its kernels."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ci.call import call
from ci.check.freivalds import confirm_gemm
from ci.check.references import device_reference
from ci.devices.cublas import Element, Mathematics, PreparedGemm, column_major
from ci.devices.errors import LaunchError, NoGpuError
from ci.devices.opening import open_cuda, usable_gpu
from ci.devices.protocol import Argument, Buffer, StepLaunch
from ci.devices.tensor_maps import tiled_float32
from kernels.build import BuiltStage
from kernels.operands import Floats, normal
from kernels.spec import Launch, Layout
from tests.devices.cuda_kernels import KERNELS, build

if TYPE_CHECKING:
    from ci.devices.cuda import CudaDevice
    from ci.devices.prepared import DeviceArgument, PlacedBuffer

ONE = Launch(grid=(1, 1, 1), block=(1, 1, 1))


def gpu_missing() -> str:
    try:
        usable_gpu()
    except NoGpuError as error:
        return str(error)
    return ""


def step(name: str, launch: Launch, arguments: Sequence[Argument]) -> StepLaunch:
    return StepLaunch(variant=name, launch=launch, arguments=tuple(arguments))


def test_the_kernels_of_these_tests_are_built_without_a_gpu() -> None:
    assert all(name.encode() in build().cubins["sm_90"].data for name in KERNELS)


@pytest.fixture(scope="module")
def device() -> CudaDevice:
    if gpu_missing():
        pytest.skip(gpu_missing())
    return open_cuda()


@pytest.fixture(scope="module")
def built() -> BuiltStage:
    return build()


def floats(name: str, count: int, misalignment_bytes: int = 0) -> Buffer:
    data = np.arange(count, dtype=np.float32)
    return Buffer(name=name, data=data, misalignment_bytes=misalignment_bytes)


def placed(device: CudaDevice, name: str, data: Floats) -> PlacedBuffer:
    return device.place(Buffer(name=name, data=np.ascontiguousarray(data).reshape(-1)))


@pytest.mark.gpu
@pytest.mark.parametrize("misalignment", [0, 4, 12])
def test_a_kernel_writes_its_buffer_in_place(
    device: CudaDevice, built: BuiltStage, misalignment: int
) -> None:
    out = floats("out", 8, misalignment)
    execution = device.run(
        built, [step("put", ONE, [out, np.int32(3), np.float32(-7)])], count=True
    )
    assert out.data.tolist() == [0, 1, 2, -7, 4, 5, 6, 7]
    assert execution.findings == ()
    assert execution.counters is None
    assert device.place(out).address % 256 == misalignment


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("index", "place"), [(8, "byte offset 32, 0 past"), (-1, "before its beginning")]
)
def test_a_write_outside_a_buffer_is_a_finding(
    device: CudaDevice, built: BuiltStage, index: int, place: str
) -> None:
    arguments: list[Argument] = [floats("out", 8), np.int32(index), np.float32(1)]
    (finding,) = device.run(built, [step("put", ONE, arguments)], count=False).findings
    assert finding.kind == "out-of-bounds write"
    assert finding.example.startswith("out at ")
    assert place in finding.example


@pytest.mark.gpu
def test_what_was_compiled_before_has_its_log_again(device: CudaDevice) -> None:
    # Kind: beside a driver, a compiler answers from what it kept, without the log that is read.
    del device
    text = f"__global__ void fresh(float* x) {{ x[threadIdx.x] += {secrets.randbits(20)}; }}"
    program = (
        "import sys; from kernels.nvrtc import compile_text; print(compile_text(sys.argv[1], "
        "'k.cu', arch='sm_90', options=['--ptxas-options=-v'], expressions=[]).log)"
    )
    command = [sys.executable, "-c", program, text]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "bytes spill stores" in done.stdout


@pytest.mark.gpu
def test_more_than_48_kb_of_dynamic_shared_memory_are_granted(
    device: CudaDevice, built: BuiltStage
) -> None:
    count = 25_000
    data = floats("data", count)
    launch = Launch(grid=(1, 1, 1), block=(256, 1, 1), dynamic_shared_bytes=4 * count)
    device.run(built, [step("reverse", launch, [data, np.int32(count)])], count=False)
    assert np.array_equal(data.data, np.arange(count, dtype=np.float32)[::-1])


@pytest.mark.gpu
def test_more_shared_memory_than_there_is_is_refused_and_harms_nothing(
    device: CudaDevice, built: BuiltStage
) -> None:
    launch = Launch(grid=(1, 1, 1), block=(256, 1, 1), dynamic_shared_bytes=1 << 20)
    with pytest.raises(LaunchError, match="dynamic shared memory"):
        device.run(built, [step("reverse", launch, [floats("data", 8), np.int32(8)])], count=False)
    out = floats("out", 1)
    device.run(built, [step("put", ONE, [out, np.int32(0), np.float32(5)])], count=False)
    assert out.data.tolist() == [5]


@pytest.mark.gpu
def test_a_block_too_large_is_refused_and_harms_nothing(
    device: CudaDevice, built: BuiltStage
) -> None:
    launch = Launch(grid=(1, 1, 1), block=(2048, 1, 1))
    arguments: list[Argument] = [floats("out", 1), np.int32(0), np.float32(5)]
    with pytest.raises(LaunchError, match=r"refuses grid \(1, 1, 1\), block \(2048, 1, 1\)"):
        device.run(built, [step("put", launch, arguments)], count=False)
    device.run(built, [step("put", ONE, arguments)], count=False)


@pytest.mark.gpu
def test_cluster_dimensions_reach_the_kernel(device: CudaDevice, built: BuiltStage) -> None:
    out = Buffer(name="out", data=np.zeros(8, dtype=np.int32))
    device.run(built, [step("ranks", Launch(grid=(4, 1, 1), block=(1, 1, 1)), [out])], count=False)
    assert out.data.tolist() == [0, 2, 1, 2, 0, 2, 1, 2]


@pytest.mark.gpu
def test_a_tensor_map_is_a_parameter(device: CudaDevice, built: BuiltStage) -> None:
    matrix = normal((256, 512), (1,))
    source, out = placed(device, "matrix", matrix), placed(device, "out", np.zeros(4096, "f4"))
    tensor_map = tiled_float32(source.address, (512, 256), (4 * 512,), (64, 64))
    arguments: list[DeviceArgument] = [tensor_map, np.int32(64), np.int32(128), out]
    launch = Launch(grid=(1, 1, 1), block=(128, 1, 1))
    device.finish(device.prepare(built, "tile", launch, arguments))
    assert np.array_equal(out.fetch().reshape(64, 64), matrix[128:192, 64:128])


@pytest.mark.gpu
def test_the_pedantic_product_is_a_trusted_reference(device: CudaDevice) -> None:
    device_reference("gemm_float64", device.multiply)
    a, b = normal((65, 129), (1,)), normal((129, 33), (2,))
    inputs = {"A": a, "B": b, "C": np.zeros((65, 33), dtype=np.float32)}
    result = device.multiply(a, b).astype(np.float64)
    assert confirm_gemm(inputs, {"alpha": 1.0, "beta": 0.0}, result, 16 * 2.0**-24) == ""


@pytest.mark.gpu
def test_cublas_is_captured_in_default_mathematics_without_tf32(device: CudaDevice) -> None:
    a, b = normal((64, 96), (1,)), normal((96, 48), (2,))
    operands = {
        "A": placed(device, "A", a),
        "B": placed(device, "B", b),
        "C": placed(device, "C", np.zeros((64, 48), dtype=np.float32)),
    }
    cublas, workspace = device.cublas(device.stream)
    product = column_major(
        {"M": 64, "N": 48, "K": 96},
        dict.fromkeys("ABC", Layout.ROW),
        {"A": 96, "B": 48, "C": 48},
    )
    addresses = {name: at.address for name, at in operands.items()}
    gemm = PreparedGemm(cublas=cublas, product=product, alpha=1.0, beta=0.0, addresses=addresses)
    times_s = device.replay_times([gemm] * 3, 2)
    assert len(times_s) == 2
    assert min(times_s) > 0
    error = np.abs(operands["C"].fetch().reshape(64, 48) - a.astype("f8") @ b.astype("f8"))
    assert (error <= 16 * 2.0**-24 * (np.abs(a) @ np.abs(b))).all()
    del workspace


@pytest.mark.gpu
def test_half_precision_inputs_give_a_float32_result(device: CudaDevice) -> None:
    a, b = normal((32, 64), (1,)).astype("f2"), normal((64, 40), (2,)).astype("f2")
    operands = {
        name: device.place(Buffer(name=name, data=data.reshape(-1)))
        for name, data in {"A": a, "B": b, "C": np.zeros((32, 40), dtype="f4")}.items()
    }
    cublas, workspace = device.cublas(device.stream, Mathematics.PEDANTIC)
    product = column_major(
        {"M": 32, "N": 40, "K": 64},
        dict.fromkeys("ABC", Layout.ROW),
        {"A": 64, "B": 40, "C": 40},
    )
    addresses = {name: at.address for name, at in operands.items()}
    a_at, b_at, c_at = (addresses[name] for name in "ABC")
    cublas.gemm(product, Element.FLOAT16, alpha=1.0, A=a_at, B=b_at, beta=0.0, C=c_at)
    device.stream.synchronize()
    got = operands["C"].fetch().reshape(32, 40)
    want = a.astype("f8") @ b.astype("f8")
    assert np.abs(got - want).max() < 1e-4
    del workspace


def last_words(call: str) -> list[str]:
    """Return what a process printed that ran a kernel which breaks the device."""
    code = (
        f"import os, numpy as np; from tests.devices.cuda_kernels import last_words; {call}; "
        "os._exit(0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parents[2],
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.gpu
def test_a_kernel_that_faults_leaves_its_process_without_a_gpu(device: CudaDevice) -> None:
    first, second = last_words("last_words('far')")
    assert first.startswith("LaunchError: a kernel faulted")
    assert second.startswith("LaunchError: a kernel faulted")
    assert second.endswith("nothing more can run in this process")
    assert device.multiply(np.ones((1, 1), "f4"), np.ones((1, 1), "f4")).tolist() == [[1]]


@pytest.mark.gpu
def test_a_kernel_that_does_not_end_is_given_up(device: CudaDevice) -> None:
    first, second = last_words("last_words('spin', np.int64(2_000_000_000))")
    assert first.startswith("StepLimitError: a kernel did not end within")
    assert second.startswith("LaunchError: a kernel did not end within")
    assert device.name == "cuda"


@pytest.mark.gpu
@pytest.mark.parametrize("stage", ["sgemm/09_warp_tile", "sgemm/02_coalesced"])
def test_a_call_works_on_cupy_arrays_where_they_are(device: CudaDevice, stage: str) -> None:
    del device
    cupy = pytest.importorskip("cupy")
    a, b = cupy.random.rand(70, 50, dtype="f4"), cupy.random.rand(41, 50, dtype="f4").T
    got = call(stage, a[:, 3:20], b[3:20], alpha=2.0)
    assert isinstance(got, cupy.ndarray)
    want = 2 * a[:, 3:20].get().astype("f8") @ b[3:20].get().astype("f8")
    assert np.abs(got.get() - want).max() < 1e-4


@pytest.mark.gpu
def test_a_call_on_numpy_arrays_gives_numpy_arrays(device: CudaDevice) -> None:
    del device
    q, k, v = (normal((2, 64 * 37), (seed,)).reshape(1, 2, 37, 64) for seed in range(3))
    got = call("attention/05_double_buffer", q, k, v, mask=2, device="cuda")
    here = call("attention/05_double_buffer", q, k, v, mask=2, device="simulator")
    assert isinstance(got, np.ndarray)
    assert np.abs(got - here).max() < 1e-5
