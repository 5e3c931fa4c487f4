"""CUDA C++ expressions, one kernel each in one source, evaluated over arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ci.simulator import Buffer, run
from tests.simulator.cuda_text import module_of
from tests.simulator.ptx_text import Array


@dataclass(frozen=True, kw_only=True)
class Expressions:
    """Expressions of ``x``, ``y`` and ``z``, all of one type, whose results are of another."""

    source: str = field(repr=False)

    @classmethod
    def of(
        cls, texts: Mapping[str, str], takes: str, gives: str, headers: tuple[str, ...] = ()
    ) -> Expressions:
        """Write a kernel for each expression.

        Args:
            texts: Name → expression.
            takes: C++ type of the inputs.
            gives: C++ type of the results.
            headers: What to include.
        """
        lines = [f"#include <{header}>" for header in headers]
        for name, text in texts.items():
            lines.append(
                f'extern "C" __global__ void {name}(const {takes}* a, const {takes}* b, '
                f"const {takes}* c, {gives}* out, int n) {{ int i = blockIdx.x * 128 + "
                f"threadIdx.x; if (i >= n) return; {takes} x = a[i], y = b[i], z = c[i]; "
                f"(void)x; (void)y; (void)z; out[i] = {text}; }}"
            )
        return cls(source="\n".join(lines))

    def __call__(self, name: str, x: Array, y: Array, z: Array, gives: str) -> Array:
        """Return an expression's results, of a NumPy type."""
        result = np.zeros(len(x), gives)
        buffers = [
            Buffer(name=label, data=np.ascontiguousarray(array).copy())
            for label, array in (("x", x), ("y", y), ("z", z))
        ]
        report = run(
            module_of(self.source),
            name,
            grid=(-(-len(x) // 128), 1, 1),
            block=(128, 1, 1),
            arguments=[*buffers, Buffer(name="out", data=result), np.int32(len(x))],
        )
        assert not report.hazards
        return result
