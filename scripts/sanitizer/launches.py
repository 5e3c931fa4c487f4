"""Launches subjects one after the other, for compute-sanitizer to watch.

``python -m scripts.sanitizer.launches FOLDER NUMBER…`` loads ``FOLDER/NUMBER.cubin`` each and
prints ``@@ NUMBER`` when its launch has ended, well or not; it stops where the GPU is lost.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np

from scripts.sanitizer.subjects import Subject, subjects

ENDED = "@@ "


def main() -> int:
    """Launch the subjects; 1 if the GPU was lost on the way."""
    cupy = importlib.import_module("cupy")
    # The pool would hide a byte beyond an array inside a larger allocation.
    cupy.cuda.set_allocator(None)
    folder, numbers = Path(sys.argv[1]), [int(word) for word in sys.argv[2:]]
    known = subjects()
    for number in numbers:
        try:
            _launch(folder / f"{number}.cubin", known[number], symbol(number))
        except (cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError) as error:
            print(f"{ENDED}{number} {error}", flush=True)
            return 1
        print(f"{ENDED}{number}", flush=True)
    return 0


def symbol(number: int) -> str:
    """Return the name that the kernel of a subject has in its cubin."""
    return f"subject_{number}"


def _launch(cubin: Path, subject: Subject, name: str) -> None:
    cupy = importlib.import_module("cupy")
    kernel = cupy.RawModule(path=str(cubin)).get_function(name)
    given = [
        cupy.asarray(argument) if isinstance(argument, np.ndarray) else argument
        for argument in subject.arguments
    ]
    if subject.unwritten:
        given[0] = cupy.empty(subject.arguments[0].shape, subject.arguments[0].dtype)
    kernel(subject.grid, subject.block, tuple(given), shared_mem=subject.dynamic_shared_bytes)
    cupy.cuda.Device().synchronize()


if __name__ == "__main__":
    sys.exit(main())
