"""Cubins of ``figures.cu``, compiled here for each architecture."""

from __future__ import annotations

import pytest

from ci.static import Disassembly, disassemble
from kernels.nvrtc import Compiled
from kernels.spec import ARCHITECTURES
from tests.static.compiled import compile_figures


@pytest.fixture(params=ARCHITECTURES)
def arch(request: pytest.FixtureRequest) -> str:
    """Every architecture in turn."""
    return str(request.param)


@pytest.fixture
def built(arch: str) -> Compiled:
    """The cubin for ``arch``."""
    return compile_figures(arch)


@pytest.fixture(scope="session")
def hopper() -> Compiled:
    """The cubin for sm_90."""
    return compile_figures("sm_90")


@pytest.fixture(scope="session")
def sass(hopper: Compiled, tmp_path_factory: pytest.TempPathFactory) -> Disassembly:
    """The disassembly of the cubin for sm_90."""
    return disassemble(hopper.data, tmp_path_factory.mktemp("sass"))
