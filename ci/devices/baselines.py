"""The vendor's routines that stages are compared with, by the name a problem declares."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ci.devices.cublas import Cublas, Element, PreparedGemm, Product, column_major
from ci.devices.errors import NoBaselineError
from ci.devices.prepared import Enqueueable, PlacedBuffer, Stream
from ci.devices.protocol import Buffer
from kernels.operands import Matrix
from kernels.spec import Layout

if TYPE_CHECKING:
    from ci.devices.cuda import CudaDevice

Size = Mapping[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class OnOperands:
    """What a baseline is to work on."""

    size: Size
    matrices: Mapping[str, Matrix]
    """Operand → its shape, layout and leading dimension."""
    placed: Mapping[str, PlacedBuffer]
    """Operand → its place on the GPU."""
    scalars: Mapping[str, float]

    def address(self, name: str) -> int:
        """Return the device address of an operand's first element."""
        return self.placed[name].address

    def leading_dimension(self, name: str) -> int:
        """Return an operand's leading dimension in elements."""
        return self.matrices[name].leading_dimension


class Baselines:
    """The baselines of one GPU; what they need is opened when it is first asked for."""

    def __init__(self, device: CudaDevice) -> None:
        """Start with nothing opened."""
        self.device = device
        self._cublas: tuple[Cublas, object] | None = None
        self._torch: Torch | None = None

    def prepare(self, name: str, on: OnOperands) -> Enqueueable:
        """Return a baseline on operands in place: enqueueing allocates nothing.

        Raises:
            NoBaselineError: There is none of that name, or its library is not installed.
            LaunchError: The library refuses.
        """
        if name not in BASELINES:
            expected = ", ".join(BASELINES)
            msg = f"baseline {name!r} is unknown, expected one of {expected}"
            raise NoBaselineError(msg if name else "the problem has no baseline")
        return BASELINES[name](self, on)

    def cublas(self) -> Cublas:
        """Return cuBLAS on the device's stream, TF32 off."""
        self._cublas = self._cublas or self.device.cublas(self.device.stream)
        return self._cublas[0]

    def torch(self) -> Torch:
        """Return PyTorch on the device's stream.

        Raises:
            NoBaselineError: It is not installed, or not for GPUs.
        """
        self._torch = self._torch or Torch(self.device.stream)
        return self._torch


def sgemm(baselines: Baselines, on: OnOperands) -> Enqueueable:
    """Return ``C = alpha*A*B + beta*C`` by cublasSgemm, TF32 off."""
    names = ("A", "B", "C")
    return PreparedGemm(
        cublas=baselines.cublas(),
        product=column_major(
            on.size,
            {name: on.matrices[name].layout for name in names},
            {name: on.leading_dimension(name) for name in names},
        ),
        alpha=on.scalars["alpha"],
        beta=on.scalars["beta"],
        addresses={name: on.address(name) for name in names},
    )


def gemv(baselines: Baselines, on: OnOperands) -> Enqueueable:
    """Return ``y = W x`` by cublasGemmEx: bfloat16 in and out, float32 sums."""
    rows, inner = on.size["M"], on.size["K"]
    return PreparedGemm(
        cublas=baselines.cublas(),
        # W row-major is its transpose column-major; x and y are matrices of one column.
        product=Product(
            transposes=(True, False),
            m=rows,
            n=1,
            k=inner,
            factors=("A", "B"),
            leading_dimensions=(on.leading_dimension("W"), inner, rows),
        ),
        alpha=1.0,
        beta=0.0,
        addresses={"A": on.address("W"), "B": on.address("x"), "C": on.address("y")},
        element=Element.BFLOAT16,
    )


def projection(baselines: Baselines, on: OnOperands) -> Enqueueable:
    """Return ``Y = X W^T + b`` as two products: ones times b, and X W^T added to it."""
    size, cublas = on.size, baselines.cublas()
    ones = baselines.device.place(Buffer(name="ones", data=np.ones(size["M"], dtype=np.float32)))
    ldy = on.leading_dimension("Y")
    row = Layout.ROW
    bias = column_major(
        {"M": size["M"], "N": size["N"], "K": 1},
        {"A": row, "B": row, "C": row},
        {"A": 1, "B": size["N"], "C": ldy},
    )
    product = column_major(
        size,
        {"A": row, "B": Layout.COLUMN, "C": row},
        {"A": on.leading_dimension("X"), "B": on.leading_dimension("W"), "C": ldy},
    )
    y = on.address("Y")
    return _InOrder(
        parts=(
            PreparedGemm(
                cublas=cublas,
                product=bias,
                alpha=1.0,
                beta=0.0,
                addresses={"A": ones.address, "B": on.address("b"), "C": y},
            ),
            PreparedGemm(
                cublas=cublas,
                product=product,
                alpha=1.0,
                beta=1.0,
                addresses={"A": on.address("X"), "B": on.address("W"), "C": y},
            ),
        ),
        kept=ones,
    )


def copy(baselines: Baselines, on: OnOperands) -> Enqueueable:
    """Return a copy of X's bytes to Y: the least that moving them costs."""
    del baselines
    return _Copy(source=on.placed["X"].array, target=on.placed["Y"].array)


def softmax(baselines: Baselines, on: OnOperands) -> Enqueueable:
    """Return PyTorch's softmax of the rows of X into Y."""
    torch = baselines.torch()
    shape = (on.size["R"], on.size["C"])
    x, y = (torch.tensor(on.placed[name], shape) for name in ("X", "Y"))
    return torch.prepare(lambda: torch.library.softmax(x, 1, out=y))


def attention(baselines: Baselines, on: OnOperands) -> Enqueueable:
    """Return PyTorch's unfused attention: product, softmax and product, without a mask."""
    torch = baselines.torch()
    size = on.size
    heads = size["B"] * size["H"]
    rows = (heads, size["S"], size["D"])
    q, k, v, o = (torch.tensor(on.placed[n], rows) for n in ("Q", "K", "V", "O"))
    square = (heads, size["S"], size["S"])
    p = torch.tensor(on.placed["P"], square)
    weights = torch.scores(square)
    scale = on.scalars["scale"]

    def work() -> None:
        torch.library.baddbmm(p, q, k.transpose(1, 2), beta=0, alpha=scale, out=p)
        torch.library.softmax(p, -1, out=weights)
        torch.library.bmm(weights, v, out=o)

    return torch.prepare(work)


BASELINES: Mapping[str, Callable[[Baselines, OnOperands], Enqueueable]] = {
    "cublas_sgemm": sgemm,
    "cublas_gemv": gemv,
    "cublas_projection": projection,
    "copy": copy,
    "torch_softmax": softmax,
    "torch_attention": attention,
}
"""Name → what prepares the routine."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _InOrder:
    """Several launches as one."""

    parts: tuple[Enqueueable, ...]
    kept: object
    """What they need, kept alive."""

    def enqueue(self, stream: Stream) -> None:
        for part in self.parts:
            part.enqueue(stream)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Copy:
    """A copy in device memory."""

    source: Any = field(repr=False)
    target: Any = field(repr=False)

    def enqueue(self, stream: Stream) -> None:
        bytes_moved = min(self.source.nbytes, self.target.nbytes)
        self.target.data.copy_from_device_async(self.source.data, bytes_moved, stream)


class Torch:
    """PyTorch on a stream of ours, float32 without TF32."""

    def __init__(self, stream: Stream) -> None:
        """Load PyTorch.

        Raises:
            NoBaselineError: It is not installed, or not for GPUs.
        """
        try:
            # Imported late: PyTorch takes seconds, and only two baselines need it.
            self.library: Any = importlib.import_module("torch")
        except (ImportError, OSError) as error:
            msg = f"PyTorch cannot be loaded: {error} (pip install torch)"
            raise NoBaselineError(msg) from error
        if not self.library.cuda.is_available():
            msg = f"PyTorch {self.library.__version__} sees no GPU (pip install torch, for CUDA 13)"
            raise NoBaselineError(msg)
        self.library.backends.cuda.matmul.allow_tf32 = False
        self._stream = stream
        self._external = self.library.cuda.ExternalStream(stream.ptr)
        self._scores: dict[tuple[int, ...], Any] = {}

    def tensor(self, buffer: PlacedBuffer, shape: tuple[int, ...]) -> Any:  # noqa: ANN401
        """Return an operand without slack as a tensor on the same memory."""
        return self.library.as_tensor(buffer.array, device="cuda").view(shape)

    def scores(self, shape: tuple[int, ...]) -> Any:  # noqa: ANN401
        """Return a tensor that holds nothing yet, the same one for the same shape."""
        if shape not in self._scores:
            self._scores.clear()
            self._scores[shape] = self.library.empty(shape, device="cuda")
        return self._scores[shape]

    def prepare(self, work: Callable[[], None]) -> Enqueueable:
        """Return work as a launch; it runs once now, so that it allocates nothing later."""
        prepared = _TorchWork(torch=self, work=work)
        prepared.enqueue(self._stream)
        self._stream.synchronize()
        return prepared

    def run(self, work: Callable[[], None]) -> None:
        """Put work on the stream."""
        with self.library.no_grad(), self.library.cuda.stream(self._external):
            work()


@dataclass(frozen=True, kw_only=True, slots=True)
class _TorchWork:
    """Calls of PyTorch that write into tensors in place."""

    torch: Torch
    work: Callable[[], None]

    def enqueue(self, stream: Stream) -> None:
        del stream
        self.torch.run(self.work)
