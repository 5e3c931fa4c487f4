"""The kernels around a form: CUDA C++ with inline assembly for a GPU, PTX for the simulator."""

from __future__ import annotations

import re

from scripts.golden.model import BLOCK, Form, InputSet, unsigned

_C_TYPES = {2: "unsigned short", 4: "unsigned", 8: "unsigned long long"}
_CONSTRAINTS = {2: "h", 4: "r", 8: "l"}
_BITS = {2: "b16", 4: "b32", 8: "b64"}
_PTX_HEADER = ".version 9.0\n.target sm_80\n.address_size 64\n"


def cuda_kernel(form: Form, given: InputSet, symbol: str) -> str:
    """Return a kernel that runs a form once per thread.

    Its parameters are pointers: inputs, first contents of the cells, outputs, cells afterwards.

    Args:
        form: The form.
        given: Its input set.
        symbol: The kernel's name.
    """
    inputs = [unsigned(kind).itemsize for kind in given.kinds]
    outputs = [unsigned(kind).itemsize for kind in form.outputs]
    cells = [(cell.itemsize, cell.shape[1]) for cell in given.cells]
    parameters = [f"const {_C_TYPES[size]}* x{n}" for n, size in enumerate(inputs)]
    parameters += [f"const {_C_TYPES[size]}* c{n}" for n, (size, _) in enumerate(cells)]
    parameters += [f"{_C_TYPES[size]}* y{n}" for n, size in enumerate(outputs)]
    parameters += [f"{_C_TYPES[size]}* z{n}" for n, (size, _) in enumerate(cells)]
    lines = [f'extern "C" __global__ void {symbol}({", ".join(parameters)})', "{"]
    lines += [f"const unsigned i = blockIdx.x * {BLOCK}u + threadIdx.x;"]
    addresses, after = [], []
    for n, ((size, words), space) in enumerate(zip(cells, form.spaces, strict=True)):
        start, end = f"c{n} + i * {words}", f"z{n} + i * {words}"
        own = {"global": end, "shared": f"s{n} + threadIdx.x * {words}", "read-only": start}[space]
        if space == "shared":
            lines += [f"__shared__ __align__(16) {_C_TYPES[size]} s{n}[{BLOCK * words}];"]
        if own != start:
            lines += [f"for (int w = 0; w < {words}; ++w) ({own})[w] = ({start})[w];"]
        if own != end:
            after += [f"for (int w = 0; w < {words}; ++w) ({end})[w] = ({own})[w];"]
        narrow = f'"r"((unsigned)__cvta_generic_to_shared({own}))'
        addresses += [narrow if space == "shared" else f'"l"({own})']
    lines += [f"{_C_TYPES[size]} r{n};" for n, size in enumerate(outputs)]
    results = ", ".join(f'"={_CONSTRAINTS[size]}"(r{n})' for n, size in enumerate(outputs))
    operands = [f'"{_CONSTRAINTS[size]}"(x{n}[i])' for n, size in enumerate(inputs)]
    lines += ["__syncthreads();"]
    lines += [
        f'asm volatile("{form.code}" : {results} : {", ".join(operands + addresses)} : "memory");'
    ]
    lines += ["__syncthreads();", *(f"y{n}[i] = r{n};" for n in range(len(outputs))), *after, "}"]
    return "\n".join(lines) + "\n"


def ptx_kernel(form: Form, given: InputSet) -> str:
    """Return a module whose kernel ``k`` does the same with the same parameters."""
    inputs = [unsigned(kind).itemsize for kind in given.kinds]
    outputs = [unsigned(kind).itemsize for kind in form.outputs]
    cells = [(cell.itemsize, cell.shape[1]) for cell in given.cells]
    sizes = [*inputs, *(s for s, _ in cells), *outputs, *(s for s, _ in cells)]
    counts = [1] * len(inputs) + [w for _, w in cells] + [1] * len(outputs) + [w for _, w in cells]
    lines = [".reg .b32 %tid, %i, %block, %size;", ".reg .b64 %wide;"]
    lines += ["mov.u32 %tid, %tid.x;", "mov.u32 %block, %ctaid.x;"]
    lines += [f"mad.lo.u32 %i, %block, {BLOCK}, %tid;"]
    for n, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        lines += [f".reg .b64 %p{n};", f"ld.param.u64 %p{n}, [p{n}];"]
        lines += [f"mad.wide.u32 %p{n}, %i, {size * count}, %p{n};"]
    for n, size in enumerate(inputs):
        lines += [f".reg .{_BITS[size]} %x{n};", f"ld.global.{_BITS[size]} %x{n}, [%p{n}];"]
    lines += [f".reg .{_BITS[size]} %y{n};" for n, size in enumerate(outputs)]
    names = [f"%y{n}" for n in range(len(outputs))] + [f"%x{n}" for n in range(len(inputs))]
    last = len(sizes) - len(cells)
    after: list[str] = []
    for n, ((size, words), space) in enumerate(zip(cells, form.spaces, strict=True)):
        source, target = f"%p{len(inputs) + n}", f"%p{last + n}"
        own = source if space == "read-only" else target
        if space == "shared":
            own = f"%s{n}"
            lines += [f".shared .align 16 .b8 sh{n}[{BLOCK * words * size}];", f".reg .b32 {own};"]
            lines += [f"mov.u32 {own}, sh{n};", f"mad.lo.u32 {own}, %tid, {size * words}, {own};"]
        held_in = "shared" if space == "shared" else "global"
        if own != source:
            lines += _copied(source, "global", own, held_in, size, words)
        if own != target:
            after += _copied(own, held_in, target, "global", size, words)
        names.append(own)
    lines += ["bar.sync 0;", re.sub(r"%(\d+)", lambda match: names[int(match[1])], form.code)]
    lines += ["bar.sync 0;"]
    first = len(inputs) + len(cells)
    lines += [f"st.global.{_BITS[s]} [%p{first + n}], %y{n};" for n, s in enumerate(outputs)]
    parameters = ", ".join(f".param .u64 p{n}" for n in range(len(sizes)))
    body = "\n".join([*lines, *after, "ret;"])
    return f"{_PTX_HEADER}.visible .entry k({parameters})\n{{\n{body}\n}}\n"


def _copied(
    source: str, source_space: str, target: str, target_space: str, size: int, words: int
) -> list[str]:
    """Return instructions that copy a thread's cell."""
    bits = _BITS[size]
    lines = []
    for offset in range(0, size * words, size):
        lines += [f"{{ .reg .{bits} w; ld.{source_space}.{bits} w, [{source}+{offset}];"]
        lines += [f"st.{target_space}.{bits} [{target}+{offset}], w; }}"]
    return lines
