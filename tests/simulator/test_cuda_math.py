"""The math functions that NVRTC writes out as PTX, within the errors that CUDA documents.

Source: CUDA C++ Programming Guide, "Mathematical Functions Appendix", maximum errors in ulp.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy import special

from tests.simulator.cuda_calls import Expressions
from tests.simulator.ptx_text import Array

RNG = np.random.default_rng(77)
_ANY = np.r_[RNG.standard_normal(96) * 8, RNG.uniform(-0.9, 0.9, 96), 0.0, 1.0, -1.0]
_WIDE = np.r_[_ANY, RNG.uniform(-1e8, 1e8, 64), 1e30, 3e-40]
_POSITIVE = np.r_[np.abs(_ANY) + 1e-6, RNG.uniform(1, 1e30, 32), 1e-42]
_UNIT = RNG.uniform(-0.999, 0.999, 192)

Oracle = Callable[..., Array]


def _exp10(x: Array) -> Array:
    return np.asarray(np.power(10.0, x))


# Name → expression of x and y, oracle in f64, inputs, ulps in f32, ulps in f64.
_FUNCTIONS: dict[str, tuple[str, Oracle, Array, int, int]] = {
    "sin": ("sin@(x)", np.sin, _WIDE, 2, 2),
    "cos": ("cos@(x)", np.cos, _WIDE, 2, 2),
    "tan": ("tan@(x)", np.tan, _WIDE, 4, 3),
    "exp": ("exp@(x)", np.exp, _ANY, 2, 2),
    "exp2": ("exp2@(x)", np.exp2, _ANY, 2, 2),
    "exp10": ("exp10@(x)", _exp10, _ANY, 2, 3),
    "log": ("log@(x)", np.log, _POSITIVE, 1, 2),
    "log2": ("log2@(x)", np.log2, _POSITIVE, 1, 2),
    "log10": ("log10@(x)", np.log10, _POSITIVE, 2, 2),
    "log1p": ("log1p@(x)", np.log1p, _POSITIVE, 1, 2),
    "expm1": ("expm1@(x)", np.expm1, _ANY, 1, 2),
    "tanh": ("tanh@(x)", np.tanh, _ANY, 2, 2),
    "sinh": ("sinh@(x)", np.sinh, _ANY, 3, 3),
    "cosh": ("cosh@(x)", np.cosh, _ANY, 2, 2),
    "asin": ("asin@(x)", np.arcsin, _UNIT, 2, 3),
    "acos": ("acos@(x)", np.arccos, _UNIT, 2, 3),
    "atan": ("atan@(x)", np.arctan, _WIDE, 2, 3),
    "asinh": ("asinh@(x)", np.arcsinh, _ANY, 3, 4),
    "acosh": ("acosh@(x)", np.arccosh, _POSITIVE + 1, 4, 4),
    "atanh": ("atanh@(x)", np.arctanh, _UNIT, 3, 4),
    "erf": ("erf@(x)", special.erf, _ANY, 2, 3),
    "erfc": ("erfc@(x)", np.vectorize(math.erfc), _UNIT * 5, 4, 6),
    "tgamma": ("tgamma@(x)", special.gamma, np.abs(_UNIT) * 20 + 0.1, 5, 12),
    "normcdf": ("normcdf@(x)", special.ndtr, _UNIT * 2, 5, 12),
    "erfinv": ("erfinv@(x)", special.erfinv, _UNIT, 3, 12),
    "cbrt": ("cbrt@(x)", np.cbrt, _ANY, 1, 2),
    "sqrt": ("sqrt@(x)", np.sqrt, _POSITIVE, 0, 0),
    "rsqrt": ("rsqrt@(x)", lambda x: 1 / np.sqrt(x), _POSITIVE, 2, 2),
    "round": ("round@(x) + rint@(x)", lambda x: np.copysign(np.floor(abs(x) + 0.5), x) + np.rint(x),
              _ANY, 0, 0),
    "whole": ("floor@(x) + ceil@(x) + trunc@(x)", lambda x: np.floor(x) + np.ceil(x) + np.trunc(x),
              _ANY, 0, 0),
    "sinpi": ("sinpi@(x)", lambda x: np.sin(np.pi * x), _UNIT / 2, 2, 3),
    "pow": ("pow@(fabs@(x), y)", lambda x, y: np.power(np.abs(x), y), _ANY, 4, 3),
    "fmod": ("fmod@(x, y)", np.fmod, _ANY, 0, 0),
    "atan2": ("atan2@(x, y)", np.arctan2, _ANY, 3, 3),
    "hypot": ("hypot@(x, y)", np.hypot, _ANY, 3, 3),
    "quotient": ("x / y", np.divide, _ANY, 0, 0),
    "extremes": ("fmax@(x, y) - fmin@(x, y)", lambda x, y: np.fmax(x, y) - np.fmin(x, y),
                 _ANY, 0, 0),
    "copysign": ("copysign@(x, y)", np.copysign, _ANY, 0, 0),
}  # fmt: skip


@cache
def _expressions(kind: str) -> Expressions:
    suffix = "f" if kind == "float" else ""
    texts = {f"k_{name}": f[0].replace("@", suffix) for name, f in _FUNCTIONS.items()}
    return Expressions.of(texts, kind, kind)


def _ulps(got: Array, want: Array) -> Array:
    """Return distances in units in the last place of the result's type."""
    near = want.astype(got.dtype)
    alike = (got == near) | (np.isnan(got) & np.isnan(near))
    off = np.abs(got.astype(np.longdouble) - want.astype(np.longdouble))
    return np.asarray(np.where(alike, 0, off / np.spacing(np.abs(near))))


@pytest.mark.parametrize("name", _FUNCTIONS)
@pytest.mark.parametrize("kind", ["float", "double"])
@pytest.mark.filterwarnings("ignore")
def test_a_math_function_is_as_near_as_cuda_says(kind: str, name: str) -> None:
    _, oracle, inputs, single, double = _FUNCTIONS[name]
    dtype = np.dtype(np.float32 if kind == "float" else np.float64)
    x = inputs.astype(dtype)
    y = RNG.permutation(np.where(x == 0, dtype.type(1.5), x))
    got = _expressions(kind)(f"k_{name}", x, y, y, dtype.str)
    wide = [x.astype(np.float64), y.astype(np.float64)]
    want = oracle(*wide[: 2 if "y" in _FUNCTIONS[name][0] else 1])
    allowed = single if kind == "float" else double
    # The oracle in f64 has an error of its own.
    assert _ulps(got, want).max() <= allowed + (0.5 if kind == "float" else 1.0)


def test_fast_functions_are_near() -> None:
    texts = {
        "sin": "__sinf(x)", "cos": "__cosf(x)", "exp": "__expf(x)", "log": "__logf(fabsf(x))",
        "power": "__powf(fabsf(x), y)", "divide": "__fdividef(x, y)",
    }  # fmt: skip
    calls = Expressions.of({f"k_{n}": text for n, text in texts.items()}, "float", "float")
    x = RNG.uniform(0.5, 3, 128).astype(np.float32)
    y = RNG.uniform(-2, 2, 128).astype(np.float32)
    want = {
        "sin": np.sin(x), "cos": np.cos(x), "exp": np.exp(x), "log": np.log(x),
        "power": np.power(x, y), "divide": x / y,
    }  # fmt: skip
    for name in texts:
        np.testing.assert_allclose(
            calls(f"k_{name}", x, y, y, "f4"), want[name], rtol=3e-6, atol=1e-6
        )


def test_directed_rounding_brackets_the_exact_result() -> None:
    operations = {"dadd": "x, y", "dmul": "x, y", "ddiv": "x, y", "fma": "x, y, z", "drcp": "x"}
    operations["dsqrt"] = "fabs(x)"
    texts = {
        f"{name}_{mode}": f"__{name}_{mode}({arguments})"
        for name, arguments in operations.items()
        for mode in ("rn", "rz", "rd", "ru")
    }
    calls = Expressions.of(texts, "double", "double")
    x, y, z = RNG.standard_normal((3, 128))
    for name in operations:
        near, zero, down, up = (
            calls(f"{name}_{m}", x, y, z, "f8") for m in ["rn", "rz", "rd", "ru"]
        )
        assert (down <= near).all()
        assert (near <= up).all()
        # An inexact result lies between two neighbours.
        assert (np.nextafter(down, np.inf)[down != up] == up[down != up]).all()
        assert (np.where(near > 0, down, up) == zero).all()
        assert (down != up).any()
