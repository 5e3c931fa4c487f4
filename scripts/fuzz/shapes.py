"""Stages of SGEMM at random shapes on two devices."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import numpy as np

from ci.check.contents import place_operands
from ci.check.launch import prepare
from ci.check.plan import plain
from ci.check.references import trusted_reference
from ci.devices.errors import DeviceError
from ci.devices.protocol import Device
from ci.verbs.context import cache_folder
from kernels.build import BuiltStage, build_stage
from kernels.operands import Floats
from kernels.spec import CudaStage
from scripts.suite_ladders import sgemm

_LARGEST = 160
_UNIT = 2.0**-24


class ShapeFuzz:
    """Runs every stage at a shape and compares the products."""

    def __init__(self, devices: Sequence[Device], architecture: str) -> None:
        """Start with nothing found.

        Args:
            devices: What runs the stages.
            architecture: Of the machine code; empty if no device needs any.
        """
        self._devices = devices
        self._architectures = [architecture] if architecture else []
        self._suite, self._ladder, self._stages = sgemm()
        self.launches = 0
        self.found: list[dict[str, object]] = []

    def run(self, seed: int, deadline_s: float) -> None:
        """Run each stage at a random shape, until ``time.monotonic()`` passes the deadline."""
        rng = random.Random(seed)  # noqa: S311
        for stage in self._stages:
            if time.monotonic() > deadline_s:
                return
            size = {axis: rng.randint(1, _LARGEST) for axis in "MNK"}
            self._compare(stage, size, seed)

    def _compare(self, stage: CudaStage, size: dict[str, int], seed: int) -> None:
        built = build_stage(
            self._suite,
            self._ladder,
            stage,
            architectures=self._architectures,
            cache=cache_folder(),
        )
        products: list[Floats] = []
        try:
            for device in self._devices:
                product, bound = self._product(device, built, stage, size)
                products.append(product)
        except DeviceError as error:
            self._add(stage, size, seed, str(error))
            return
        self.launches += 1
        worst = max(float((np.abs(product - products[0]) / bound).max()) for product in products)
        if not worst <= 1:
            self._add(stage, size, seed, f"{worst:.3g} times the error bound apart")

    def _add(self, stage: CudaStage, size: dict[str, int], seed: int, what: str) -> None:
        print(f"{stage.name} {size}: {what}", flush=True)
        self.found.append({"seed": seed, "stage": stage.name, "size": size, "what": what})

    def _product(
        self, device: Device, built: BuiltStage, stage: CudaStage, size: dict[str, int]
    ) -> tuple[Floats, Floats]:
        """Return a product, and how far two of its kind may be apart."""
        problem = self._ladder.problem
        reference = trusted_reference(problem.reference)
        scalars = {name: levels[0] for name, levels in reference.scalars.items()}
        matrices = place_operands(problem, reference, plain(problem, size, scalars))
        a, b = (np.abs(matrices[name].numbers().astype(np.float64)) for name in "AB")
        magnitude = np.abs(scalars["alpha"]) * (a @ b)
        if scalars["beta"]:
            magnitude += np.abs(scalars["beta"] * matrices["C"].numbers())
        steps = prepare(
            problem, stage, device.tile(built), matrices=matrices, size=size, scalars=scalars
        )
        device.run(built, steps, count=False)
        bound = 2 * (size["K"] + 3) * _UNIT * magnitude
        return matrices["C"].numbers().copy(), np.maximum(bound, np.finfo(np.float32).tiny)
