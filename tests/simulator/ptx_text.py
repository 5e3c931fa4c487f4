"""Small PTX texts: kernels around a few instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ci.simulator import Buffer, Report, parse, run

Array = NDArray[Any]

HEADER = ".version 9.0\n.target sm_80\n.address_size 64\n"
_KINDS = {2: "b16", 4: "b32", 8: "b64"}


def entry(body: str, parameters: str = ".param .u64 p0", outside: str = "") -> str:
    """Return a module whose only kernel, ``k``, has this body; registers are declared."""
    return (
        f'{HEADER}.file 1 "k.cu"\n{outside}\n.visible .entry k({parameters})\n{{\n'
        ".reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<30>;\n.reg .b64 %rd<30>;\n"
        ".reg .f32 %f<9>;\n.reg .f64 %fd<9>;\n"
        f"{body}\nret;\n}}\n"
    )


def _type(dtype: np.dtype[Any]) -> str:
    return f"f{8 * dtype.itemsize}" if dtype.kind == "f" else _KINDS[dtype.itemsize]


def lanewise(code: str, inputs: Sequence[Array], outputs: Sequence[DTypeLike]) -> list[Array]:
    """Execute instructions once per element and return what they leave in the outputs.

    Args:
        code: Instructions on ``%i0``, ``%i1`` … (inputs), ``%o0`` … (outputs) and the registers
            that ``entry`` declares from ``%r20``, ``%f5``, ``%p1`` on.
        inputs: (n,) each.
        outputs: Types of the outputs.
    """
    count = len(inputs[0])
    arrays = [np.ascontiguousarray(x) for x in inputs]
    arrays += [np.zeros(count, dtype) for dtype in outputs]
    names = [f"i{n}" for n in range(len(inputs))] + [f"o{n}" for n in range(len(outputs))]
    types = [_type(array.dtype) for array in arrays]
    lines = [f".reg .{kind} %{name};" for name, kind in zip(names, types, strict=True)]
    lines += ["mov.u32 %r0, %ctaid.x;", "mov.u32 %r1, %ntid.x;", "mov.u32 %r2, %tid.x;"]
    lines += ["mad.lo.u32 %r3, %r0, %r1, %r2;", f"setp.ge.u32 %p0, %r3, {count};", "@%p0 ret;"]
    for n, (name, array) in enumerate(zip(names, arrays, strict=True)):
        lines += [f"ld.param.u64 %rd{n}, [p{n}];"]
        lines += [f"mad.wide.u32 %rd{n}, %r3, {array.itemsize}, %rd{n};"]
        if n < len(inputs):
            lines += [f"ld.global.{_KINDS[array.itemsize]} %{name}, [%rd{n}];"]
    lines += [code]
    for n in range(len(inputs), len(arrays)):
        lines += [f"st.global.{_KINDS[arrays[n].itemsize]} [%rd{n}], %{names[n]};"]
    parameters = ", ".join(f".param .u64 p{n}" for n in range(len(arrays)))
    buffers = [Buffer(name=name, data=a) for name, a in zip(names, arrays, strict=True)]
    report = run(
        parse(entry("\n".join(lines), parameters)),
        "k",
        grid=(-(-count // 64), 1, 1),
        block=(64, 1, 1),
        arguments=buffers,
    )
    assert not report.hazards, report.hazards
    return arrays[len(inputs) :]


def launch(
    text: str,
    *buffers: Buffer,
    grid: tuple[int, int, int] = (1, 1, 1),
    block: tuple[int, int, int] = (32, 1, 1),
    **options: Any,  # noqa: ANN401
) -> Report:
    """Launch the kernel ``k`` of a text."""
    return run(parse(text), "k", grid=grid, block=block, arguments=buffers, **options)
