"""cuBLAS called directly: CuPy refuses it while a stream is being captured."""

from __future__ import annotations

import ctypes
import enum
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ci.devices.errors import LaunchError, NoGpuError
from kernels.spec import Layout

WORKSPACE_BYTES = 64 << 20
"""Given to cuBLAS up front: under capture it may allocate nothing, and Hopper's kernels want
32 MB."""

_SUCCESS = 0
_STATUS = {
    1: "NOT_INITIALIZED",
    3: "ALLOC_FAILED",
    7: "INVALID_VALUE",
    8: "ARCH_MISMATCH",
    11: "MAPPING_ERROR",
    13: "EXECUTION_FAILED",
    14: "INTERNAL_ERROR",
    15: "NOT_SUPPORTED",
    16: "LICENSE_ERROR",
}
"""cublasStatus_t, without its prefix."""
_COMPUTE_32F, _COMPUTE_32F_PEDANTIC = 68, 69
_DEFAULT_ALGORITHM = -1


class Mathematics(enum.Enum):
    """How float32 products are computed; TF32 is in neither."""

    DEFAULT = 0
    """CUBLAS_DEFAULT_MATH: what people get who call sgemm."""
    PEDANTIC = 2
    """CUBLAS_PEDANTIC_MATH: no liberties at all, for references."""


class Element(enum.Enum):
    """Element types, as cudaDataType numbers them."""

    FLOAT32 = 0
    FLOAT16 = 2
    BFLOAT16 = 14


@dataclass(frozen=True, kw_only=True, slots=True)
class Product:
    """A matrix product as BLAS is asked for it: every matrix column-major."""

    transposes: tuple[bool, bool]
    """Whether the first and the second factor are read as their transpose."""
    m: int
    n: int
    k: int
    factors: tuple[str, str]
    """Which operand is the first factor, and which the second."""
    leading_dimensions: tuple[int, int, int]
    """Of the first factor, the second and the result."""


def column_major(
    size: Mapping[str, int],
    layouts: Mapping[str, Layout],
    leading_dimensions: Mapping[str, int],
) -> Product:
    """Return ``C[M,N] = A[M,K] B[K,N]`` in any layouts as a product of column-major matrices.

    A row-major result is asked for as its transpose, ``Cᵀ = Bᵀ·Aᵀ``: the same memory, read as
    column-major, holds Cᵀ. A factor whose memory holds the transpose of what is wanted is read
    transposed.

    Args:
        size: Extents of M, N and K.
        layouts: Of A, B and C.
        leading_dimensions: Of A, B and C, in elements.
    """
    transposed = layouts["C"] is Layout.ROW
    factors, m, n = (("B", "A"), "N", "M") if transposed else (("A", "B"), "M", "N")
    wanted = Layout.ROW if transposed else Layout.COLUMN
    first, second = factors
    return Product(
        transposes=(layouts[first] is not wanted, layouts[second] is not wanted),
        m=size[m],
        n=size[n],
        k=size["K"],
        factors=factors,
        leading_dimensions=(
            leading_dimensions[first],
            leading_dimensions[second],
            leading_dimensions["C"],
        ),
    )


class Cublas:
    """A cuBLAS handle on one stream, with a workspace of its own; usable under capture."""

    def __init__(
        self, stream: int, workspace: int, mathematics: Mathematics = Mathematics.DEFAULT
    ) -> None:
        """Make a handle.

        Args:
            stream: Handle of the CUDA stream (``Stream.ptr`` of CuPy).
            workspace: Device address of ``WORKSPACE_BYTES`` bytes that outlive the handle.
            mathematics: How float32 is computed.

        Raises:
            NoGpuError: cuBLAS is not installed.
            LaunchError: cuBLAS refuses, such as for want of memory.
        """
        self.stream = stream
        self._library = ctypes.CDLL(str(library_path()))
        self._compute = (
            _COMPUTE_32F_PEDANTIC if mathematics is Mathematics.PEDANTIC else _COMPUTE_32F
        )
        self._handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        # In this order: setting the stream takes a workspace away.
        self._call("cublasSetStream_v2", self._handle, ctypes.c_void_p(stream))
        self._call(
            "cublasSetWorkspace_v2",
            self._handle,
            ctypes.c_void_p(workspace),
            ctypes.c_size_t(WORKSPACE_BYTES),
        )
        self._call("cublasSetMathMode", self._handle, ctypes.c_int(mathematics.value))

    def version(self) -> str:
        """Return the library's version, such as ``13.1.0``."""
        number = ctypes.c_int()
        self._call("cublasGetVersion_v2", self._handle, ctypes.byref(number))
        major, rest = divmod(number.value, 10_000)
        return f"{major}.{rest // 100}.{rest % 100}"

    def sgemm(self, product: Product, *, alpha: float, A: int, B: int, beta: float, C: int) -> None:
        """Put ``C = alpha*A*B + beta*C`` in float32 on the stream.

        Args:
            product: The shapes, from ``column_major``.
            alpha: Factor of the product.
            A: Device address.
            B: Device address.
            beta: Factor of C; 0: C is not read.
            C: Device address.

        Raises:
            LaunchError: cuBLAS refuses.
        """
        first, second = (_pick(name, A, B) for name in product.factors)
        lda, ldb, ldc = product.leading_dimensions
        self._call(
            "cublasSgemm_v2",
            self._handle,
            *_shape(product),
            ctypes.byref(ctypes.c_float(alpha)),
            first,
            ctypes.c_int(lda),
            second,
            ctypes.c_int(ldb),
            ctypes.byref(ctypes.c_float(beta)),
            ctypes.c_void_p(C),
            ctypes.c_int(ldc),
        )

    def gemm(
        self,
        product: Product,
        element: Element,
        *,
        alpha: float,
        A: int,
        B: int,
        beta: float,
        C: int,
        result: Element = Element.FLOAT32,
    ) -> None:
        """Put ``C = alpha*A*B + beta*C`` on the stream: A and B of a type, sums float32.

        Args:
            product: The shapes, from ``column_major``.
            element: Type of A's and B's elements.
            alpha: Factor of the product.
            A: Device address.
            B: Device address.
            beta: Factor of C; 0: C is not read.
            C: Device address.
            result: Type of C's elements.

        Raises:
            LaunchError: cuBLAS refuses.
        """
        first, second = (_pick(name, A, B) for name in product.factors)
        lda, ldb, ldc = product.leading_dimensions
        self._call(
            "cublasGemmEx",
            self._handle,
            *_shape(product),
            ctypes.byref(ctypes.c_float(alpha)),
            first,
            ctypes.c_int(element.value),
            ctypes.c_int(lda),
            second,
            ctypes.c_int(element.value),
            ctypes.c_int(ldb),
            ctypes.byref(ctypes.c_float(beta)),
            ctypes.c_void_p(C),
            ctypes.c_int(result.value),
            ctypes.c_int(ldc),
            ctypes.c_int(self._compute),
            ctypes.c_int(_DEFAULT_ALGORITHM),
        )

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status != _SUCCESS:
            name = _STATUS.get(status, "an unknown status")
            raise LaunchError(
                f"{function} answered {status} ({name}), expected 0 "
                "(CUBLAS_LOGINFO_DBG=1 tells more)"
            )


class OnStream(Protocol):
    """A CuPy stream, as far as it is used here."""

    ptr: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PreparedGemm:
    """A product on operands in place: enqueueing allocates nothing and waits for nothing."""

    cublas: Cublas
    product: Product
    alpha: float
    beta: float
    addresses: Mapping[str, int]
    """Operand → device address."""
    element: Element = Element.FLOAT32
    """Type of the elements of all three matrices."""

    def enqueue(self, stream: OnStream) -> None:
        """Put the product on a stream, which may be capturing and must be the handle's.

        Raises:
            LaunchError: It is another stream, or cuBLAS refuses.
        """
        if stream.ptr != self.cublas.stream:
            raise LaunchError(
                f"the cuBLAS handle is on stream {self.cublas.stream:#x}, expected {stream.ptr:#x} "
                "(make one handle a stream)"
            )
        a, b, c = (self.addresses[name] for name in "ABC")
        if self.element is Element.FLOAT32:
            self.cublas.sgemm(self.product, alpha=self.alpha, A=a, B=b, beta=self.beta, C=c)
        else:
            self.cublas.gemm(
                self.product,
                self.element,
                alpha=self.alpha,
                A=a,
                B=b,
                beta=self.beta,
                C=c,
                result=self.element,
            )


def library_path() -> Path:
    """Return the path of libcublas in its wheel.

    Raises:
        NoGpuError: The wheel is not installed.
    """
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(root, "cu13", "lib", "libcublas.so.13")
        if path.is_file():
            return path
    raise NoGpuError(
        "cuBLAS is not installed, expected libcublas.so.13 of the wheel nvidia-cublas "
        "(pip install 'nvidia-cublas>=13,<14')"
    )


def _pick(name: str, a: int, b: int) -> ctypes.c_void_p:
    return ctypes.c_void_p(a if name == "A" else b)


def _shape(product: Product) -> tuple[ctypes.c_int, ...]:
    numbers = (*product.transposes, product.m, product.n, product.k)
    return tuple(ctypes.c_int(int(number)) for number in numbers)
