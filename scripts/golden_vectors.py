"""Records on a GPU what every form of an instruction gives, and replays it on the simulator.

``python -m scripts.golden_vectors record --out FOLDER`` on a machine with a GPU writes
``golden.npz`` and ``golden.txt``; ``… replay FILE`` prints how the simulator's results compare,
form by form, and returns 1 if a form that it emulates disagrees.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from kernels.nvrtc import toolchain
from scripts.golden.catalogue import all_forms, input_sets
from scripts.golden.compare import Agreement, agreement
from scripts.golden.compile import compile_forms, symbol
from scripts.golden.model import BLOCK, Bits, Form, InputSet, Origin, Recording, unsigned
from scripts.golden.simulated import MissingError, simulate
from scripts.golden.store import load, save

_BATCH = 100
"""Forms of one module."""
_LARGEST_BYTES = 2 << 20


def main(words: Sequence[str] | None = None) -> int:
    """Record or replay."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("record").add_argument("--out", type=Path, required=True)
    verbs.add_parser("replay").add_argument("file", type=Path)
    options = parser.parse_args(words)
    if options.verb == "replay":
        return replay(options.file)
    options.out.mkdir(parents=True, exist_ok=True)
    return record(options.out)


def record(out: Path) -> int:
    """Run every form on the GPU and write what it gave; 1 if the file is too large."""
    cupy = importlib.import_module("cupy")
    from ci.devices.cuda import CudaDevice  # noqa: PLC0415

    started = time.monotonic()
    facts = CudaDevice().facts
    architecture = f"sm_{facts.capability[0]}{facts.capability[1]}"
    forms = all_forms()
    sets = input_sets(forms)
    held = {
        name: [cupy.asarray(a) for a in (*given.columns, *given.cells)]
        for name, given in sets.items()
    }
    results: dict[str, tuple[Bits, ...]] = {}
    refused: list[tuple[str, str]] = []
    numbered = [(number, form, sets[form.inputs]) for number, form in enumerate(forms)]
    for first in range(0, len(numbered), _BATCH):
        cubin, kept, complaints = compile_forms(numbered[first : first + _BATCH], architecture)
        refused += [(forms[number].name, words) for number, words in complaints]
        with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
            file.write(cubin)
            file.flush()
            module = cupy.RawModule(path=file.name)
            for number in kept:
                form = forms[number]
                kernel = module.get_function(symbol(number))
                given = sets[form.inputs]
                results[form.name] = _launched(cupy, kernel, form, given, held[form.inputs])
    recording = Recording(
        origin=Origin(
            gpu=facts.name,
            driver=str(facts.driver),
            nvrtc=toolchain(),
            date=datetime.now(UTC).date().isoformat(),
            architecture=architecture,
        ),
        forms=tuple(form for form in forms if form.name in results),
        sets=sets,
        results=results,
        refused=tuple(refused),
    )
    path = out / "golden.npz"
    save(path, recording)
    text = summary(recording, path.stat().st_size, time.monotonic() - started)
    (out / "golden.txt").write_text(text, encoding="utf-8")
    print(text)
    return int(path.stat().st_size > _LARGEST_BYTES)


def _launched(
    cupy: Any,  # noqa: ANN401
    kernel: Any,  # noqa: ANN401
    form: Form,
    given: InputSet,
    inputs: Sequence[Any],
) -> tuple[Bits, ...]:
    """Return the results of a form on the GPU."""
    outputs = [cupy.zeros(given.threads, dtype=unsigned(kind)) for kind in form.outputs]
    outputs += [cupy.zeros(cell.shape, dtype=cell.dtype) for cell in given.cells]
    kernel((given.threads // BLOCK,), (BLOCK,), (*inputs, *outputs))
    cupy.cuda.Device().synchronize()
    return tuple(np.asarray(output.get()) for output in outputs)


def summary(recording: Recording, size_bytes: int, seconds: float) -> str:
    """Return what was recorded, for people: origin, counts, and what the assembler refused."""
    origin = recording.origin
    counts = f"{len(recording.forms)} forms, {len(recording.sets)} input sets, {size_bytes} bytes"
    lines = [
        f"{origin.gpu}, driver {origin.driver}, {origin.architecture}, {origin.date}",
        origin.nvrtc,
        f"{counts}, {seconds:.1f} s",
        f"{len(recording.refused)} forms refused by the assembler:",
    ]
    reasons = collections.Counter(
        (re.split(r"[. ]", name)[0], words) for name, words in recording.refused
    )
    lines += [f"  {opcode}: {words} ({n} forms)" for (opcode, words), n in reasons.items()]
    return "\n".join(lines) + "\n"


def replayed(recording: Recording) -> Iterator[tuple[Form, Agreement | None, str]]:
    """Give each form with how its results agree, or with why the simulator has none."""
    for form in recording.forms:
        given = recording.sets[form.inputs]
        try:
            got = simulate(form, given)
        except MissingError as error:
            yield form, None, str(error)
            continue
        yield form, agreement(form, given, recording.results[form.name], got), ""


def replay(file: Path) -> int:
    """Print how the simulator's results compare; 1 if some disagree."""
    counts: collections.Counter[str] = collections.Counter()
    for form, found, why in replayed(load(file)):
        if found is None:
            counts["not emulated"] += 1
            print(f"not emulated  {form.name}: {why}")
        elif found.differing:
            counts["different"] += 1
            print(f"DIFFERENT     {form.name}: {found.differing} values, {found.example}")
        else:
            counts["equal"] += 1
            distance = f" within {found.ulps} ulp" if found.ulps else ""
            print(f"equal         {form.name}{distance}")
    print(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    return int(counts["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
