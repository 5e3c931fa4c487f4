"""Half and bfloat16 intrinsics as NVRTC writes them out, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from tests.simulator.cuda_calls import Expressions
from tests.simulator.ptx_text import Array

RNG = np.random.default_rng(31)
_HEADERS = ("cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h")
_TYPES = {"half": "__half", "bfloat": "__nv_bfloat16"}

# Name → CUDA expression, the same on f32 arrays. Results are rounded once at the end.
_EXACT: dict[str, tuple[str, Callable[..., Array]]] = {
    "add": ("__hadd(x, y)", lambda x, y, *_: x + y),
    "sub": ("__hsub(x, y)", lambda x, y, *_: x - y),
    "mul": ("__hmul(x, y)", lambda x, y, *_: x * y),
    "fma": ("__hfma(x, y, z)", lambda x, y, z: x.astype(float) * y + z),
    "relu": ("__hfma_relu(x, y, z)", lambda x, y, z: np.maximum(x.astype(float) * y + z, 0)),
    "neg": ("__hneg(x)", lambda x, *_: -x),
    "abs": ("__habs(x)", lambda x, *_: np.abs(x)),
    "max": ("__hmax(x, y)", lambda x, y, *_: np.fmax(x, y)),
    "min": ("__hmin(x, y)", lambda x, y, *_: np.fmin(x, y)),
    "max_nan": ("__hmax_nan(x, y)", lambda x, y, *_: np.maximum(x, y)),
    "min_nan": ("__hmin_nan(x, y)", lambda x, y, *_: np.minimum(x, y)),
    "floor": ("hfloor(x)", lambda x, *_: np.floor(x)),
    "ceil": ("hceil(x)", lambda x, *_: np.ceil(x)),
    "rint": ("hrint(x)", lambda x, *_: np.rint(x)),
    "shuffled": ("__shfl_xor_sync(~0u, x, 1)", lambda x, *_: x.reshape(-1, 2)[:, ::-1].ravel()),
}
_NEAR: dict[str, tuple[str, Callable[..., Array]]] = {
    "exp": ("hexp(x)", lambda x, *_: np.exp(x)),
    "log": ("hlog(__habs(x))", lambda x, *_: np.log(np.abs(x))),
    "sqrt": ("hsqrt(__habs(x))", lambda x, *_: np.sqrt(np.abs(x))),
    "rcp": ("hrcp(x)", lambda x, *_: 1 / x),
    "sin": ("hsin(x)", lambda x, *_: np.sin(x)),
    "tanh": ("htanh(x)", lambda x, *_: np.tanh(x)),
    "exp2": ("hexp2(x)", lambda x, *_: np.exp2(x)),
    "quotient": ("__hdiv(x, y)", lambda x, y, *_: x / y),
}
_ORDERS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal, "ne": lambda x, y: (x < y) | (x > y), "lt": np.less, "ge": np.greater_equal,
    "equ": lambda x, y: ~((x < y) | (x > y)), "neu": np.not_equal, "ltu": lambda x, y: ~(x >= y),
    "gtu": lambda x, y: ~(x <= y),
}  # fmt: skip


def to_type(values: Array, kind: str) -> Array:
    """Round f64 or f32 values to nearest even, as 16-bit patterns."""
    if kind == "half":
        return values.astype(np.float16).view(np.uint16)
    bits = values.astype(np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), 0x7FFF, rounded).astype(np.uint16)


def from_type(bits: Array, kind: str) -> Array:
    if kind == "half":
        return bits.view(np.float16).astype(np.float32)
    return np.asarray(bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def inputs(kind: str) -> list[Array]:
    """Return three lists of 128 values, some of which are NaN, as patterns."""
    values = RNG.standard_normal((3, 128)) * 4
    values[:, ::16] = np.nan
    values[1, :8] = values[0, :8]
    return list(to_type(values, kind))


@cache
def scalars(kind: str) -> Expressions:
    texts = {f"k_{name}": text for name, (text, _) in (_EXACT | _NEAR).items()}
    for name in _ORDERS:
        texts[f"k_is_{name}"] = f"__h{name}(x, y) ? {_TYPES[kind]}(1.f) : {_TYPES[kind]}(0.f)"
    return Expressions.of(texts, _TYPES[kind], _TYPES[kind], _HEADERS)


@pytest.mark.parametrize("kind", _TYPES)
@pytest.mark.filterwarnings("ignore")
def test_arithmetic_rounds_once(kind: str) -> None:
    x, y, z = inputs(kind)
    for name, (_, want) in _EXACT.items():
        got = from_type(scalars(kind)(f"k_{name}", x, y, z, "u2"), kind)
        exact = want(*(from_type(v, kind) for v in (x, y, z)))
        np.testing.assert_array_equal(got, from_type(to_type(exact, kind), kind), err_msg=name)


@pytest.mark.parametrize("kind", _TYPES)
@pytest.mark.filterwarnings("ignore")
def test_functions_are_near(kind: str) -> None:
    x, y, z = inputs(kind)
    for name, (_, want) in _NEAR.items():
        got = from_type(scalars(kind)(f"k_{name}", x, y, z, "u2"), kind)
        exact = want(*(from_type(v, kind) for v in (x, y, z)))
        rtol = 2.0**-10 if kind == "half" else 2.0**-7
        np.testing.assert_allclose(got, exact, rtol=rtol, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", _TYPES)
def test_comparisons_treat_nan_as_their_names_say(kind: str) -> None:
    x, y, z = inputs(kind)
    for name, order in _ORDERS.items():
        got = from_type(scalars(kind)(f"k_is_{name}", x, y, z, "u2"), kind)
        want = order(from_type(x, kind), from_type(y, kind))
        np.testing.assert_array_equal(got != 0, want, err_msg=name)


_PAIRS = {
    "add": ("__hadd2(x, y)", "add"),
    "fma": ("__hfma2(x, y, z)", "fma"),
    "relu": ("__hfma2_relu(x, y, z)", "relu"),
    "max": ("__hmax2(x, y)", "max"),
    "min_nan": ("__hmin2_nan(x, y)", "min_nan"),
    "neg": ("__hneg2(x)", "neg"),
    "abs": ("__habs2(x)", "abs"),
}


@pytest.mark.parametrize("kind", _TYPES)
@pytest.mark.filterwarnings("ignore")
def test_packed_arithmetic_is_that_of_its_halves(kind: str) -> None:
    pair = "__half2" if kind == "half" else "__nv_bfloat162"
    texts = {f"k_{name}": text for name, (text, _) in _PAIRS.items()}
    texts |= {f"k_is_{name}": f"__h{name}2(x, y)" for name in _ORDERS}
    calls = Expressions.of(texts, pair, pair, _HEADERS)
    halves = inputs(kind)
    x, y, z = (half.view(np.uint32) for half in halves)
    numbers = [from_type(half, kind) for half in halves]
    for name, (_, alike) in _PAIRS.items():
        got = calls(f"k_{name}", x, y, z, "u4").view(np.uint16)
        want = to_type(_EXACT[alike][1](*numbers), kind)
        np.testing.assert_array_equal(from_type(got, kind), from_type(want, kind), err_msg=name)
    for name, order in _ORDERS.items():
        got = from_type(calls(f"k_is_{name}", x, y, z, "u4").view(np.uint16), kind)
        np.testing.assert_array_equal(got, order(numbers[0], numbers[1]), err_msg=name)


def test_conversions_from_and_to_halves() -> None:
    texts = {
        "k_half": "__half_as_ushort(__float2half_rn(x))",
        "k_down": "__half_as_ushort(__float2half_rd(x))",
        "k_zero": "__half_as_ushort(__float2half_rz(x))",
        "k_bfloat": "__bfloat16_as_ushort(__float2bfloat16_rn(x))",
        "k_bzero": "__bfloat16_as_ushort(__float2bfloat16_rz(x))",
        "k_whole": "(unsigned short)__half2short_rn(__float2half_rn(x))",
        "k_e4m3": "(unsigned short)__nv_fp8_e4m3(x).__x",
        "k_e5m2": "(unsigned short)__nv_fp8_e5m2(x).__x",
        "k_back": "__half_as_ushort(__half(__nv_fp8_e4m3(x)))",
    }
    calls = Expressions.of(texts, "float", "unsigned short", _HEADERS)
    x = (RNG.standard_normal(128) * 50).astype(np.float32)
    got = {name: calls(name, x, x, x, "u2") for name in texts}
    nearest = x.astype(np.float16)
    np.testing.assert_array_equal(got["k_half"].view(np.float16), nearest)
    down, zero = got["k_down"].view(np.float16), got["k_zero"].view(np.float16)
    assert (down <= x).all()
    assert (np.nextafter(down, np.float16(np.inf)) > x).all()
    np.testing.assert_array_equal(zero, np.where(x > 0, down, np.nextafter(down, np.float16(1e4))))
    np.testing.assert_array_equal(got["k_bfloat"], to_type(x, "bfloat"))
    np.testing.assert_array_equal(got["k_bzero"], (x.view(np.uint32) >> 16).astype(np.uint16))
    np.testing.assert_array_equal(got["k_whole"].view(np.int16), np.rint(nearest).astype(np.int16))
    eight = got["k_back"].view(np.float16).astype(np.float32)
    # Three bits of mantissa: at most half a unit of 2^-3 away.
    assert (np.abs(eight - x) <= np.abs(x) * 2.0**-4 + 2.0**-10).all()
    # The patterns of e5m2 are the upper bytes of f16.
    five = (got["k_e5m2"] << 8).view(np.float16).astype(np.float32)
    assert (np.abs(five - x) <= np.abs(x) * 2.0**-3 + 2.0**-17).all()
    assert len(np.unique(got["k_e4m3"])) > 40
