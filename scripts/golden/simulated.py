"""Runs forms on the simulator."""

from __future__ import annotations

import numpy as np

from ci.simulator import Buffer, SimulatorError, parse, run
from scripts.golden.kernels import ptx_kernel
from scripts.golden.model import BLOCK, Bits, Form, InputSet, unsigned


class MissingError(Exception):
    """The simulator does not emulate a form."""


def simulate(form: Form, given: InputSet) -> tuple[Bits, ...]:
    """Return what the simulator makes of a form.

    Args:
        form: The form.
        given: Its input set.

    Raises:
        MissingError: It is not emulated.
    """
    try:
        return launch(ptx_kernel(form, given), form, given)
    except SimulatorError as error:
        raise MissingError(str(error)) from error


def launch(ptx: str, form: Form, given: InputSet) -> tuple[Bits, ...]:
    """Return the results of a form's kernel ``k``, cells behind outputs.

    Raises:
        SimulatorError: The simulator does not run it.
    """
    outputs = [np.zeros(given.threads, unsigned(kind)) for kind in form.outputs]
    outputs += [np.zeros_like(cell) for cell in given.cells]
    arrays: list[Bits] = [*(a.copy() for a in (*given.columns, *given.cells)), *outputs]
    run(
        parse(ptx),
        "k",
        grid=(given.threads // BLOCK, 1, 1),
        block=(BLOCK, 1, 1),
        arguments=[Buffer(name=f"p{n}", data=a.reshape(-1)) for n, a in enumerate(arrays)],
        count=False,
    )
    return tuple(outputs)
