"""Ask NVIDIA's own calculator; run as a script, this records ``occupancy_reference.csv``.

Run it from the repository root with ``python -m tests.static.occupancy_reference`` when the
architectures or the range of launches change; it needs g++.
"""

from __future__ import annotations

import csv
import importlib.util
import random
import subprocess
import tempfile
from dataclasses import astuple, dataclass
from pathlib import Path

GOLDEN = Path(__file__).with_name("occupancy_reference.csv")
CAPABILITIES = ((7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3), (12, 0))
RESOURCES = ("threads", "blocks", "registers", "shared memory", "barriers")
_GOLDEN_LAUNCHES = 1600
_LARGEST_REQUEST_BYTES = 240_000


@dataclass(frozen=True, slots=True)
class Launch:
    """One question to the calculator."""

    major: int
    minor: int
    registers: int
    static_shared_bytes: int
    dynamic_shared_bytes: int
    threads: int
    barriers: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What the calculator says."""

    resident_blocks: int
    limits: tuple[int, ...]
    """Blocks that each of ``RESOURCES`` allows."""

    @property
    def limited_by(self) -> tuple[str, ...]:
        return tuple(
            name
            for name, limit in zip(RESOURCES, self.limits, strict=True)
            if limit == self.resident_blocks
        )


def random_launches(seed: int, count: int) -> list[Launch]:
    """Return launches of every capability, many of them at the edges of what fits."""
    draw = random.Random(seed)  # noqa: S311
    launches = []
    for number in range(count):
        major, minor = CAPABILITIES[number % len(CAPABILITIES)]
        static = draw.choice((0, draw.randint(0, 49152), draw.randint(0, 2048)))
        dynamic = draw.choice((0, draw.randint(0, _LARGEST_REQUEST_BYTES), draw.randint(0, 16384)))
        launches.append(
            Launch(
                major=major,
                minor=minor,
                registers=draw.choice((draw.randint(1, 255), draw.randint(16, 48))),
                static_shared_bytes=static,
                dynamic_shared_bytes=draw.choice((dynamic, max(0, 101376 - static), 0)),
                threads=draw.choice((draw.randint(1, 1056), 32 * draw.randint(1, 32))),
                barriers=draw.choice((0, 1, 1, draw.randint(2, 16))),
            )
        )
    return launches


def ask(launches: list[Launch]) -> list[Answer]:
    """Compile the driver with g++ and return the calculator's answers, in order."""
    (nvidia,) = importlib.util.find_spec("nvidia").submodule_search_locations  # type: ignore[union-attr,misc]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "occupancy_reference")
        source = Path(__file__).with_suffix(".cpp")
        include = Path(nvidia, "cu13", "include")
        subprocess.run(["g++", "-O1", f"-I{include}", str(source), "-o", str(program)], check=True)
        questions = "\n".join(" ".join(map(str, astuple(launch))) for launch in launches)
        done = subprocess.run(
            [str(program)], input=questions, capture_output=True, check=True, text=True
        )
    rows = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    return [Answer(resident_blocks=row[0], limits=row[1:]) for row in rows]


def read_golden() -> list[tuple[Launch, Answer]]:
    """Return the recorded questions and answers."""
    with GOLDEN.open(encoding="utf-8", newline="") as file:
        rows = [tuple(map(int, row)) for row in list(csv.reader(file))[1:]]
    return [(Launch(*row[:7]), Answer(resident_blocks=row[7], limits=row[8:])) for row in rows]


def _record() -> None:
    """Write the golden file."""
    launches = random_launches(seed=20, count=_GOLDEN_LAUNCHES)
    with GOLDEN.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*Launch.__dataclass_fields__, "resident_blocks", *RESOURCES])
        for launch, answer in zip(launches, ask(launches), strict=True):
            writer.writerow([*astuple(launch), answer.resident_blocks, *answer.limits])


if __name__ == "__main__":
    _record()
