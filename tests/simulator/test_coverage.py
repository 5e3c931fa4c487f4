"""What the documentation says is executed."""

from __future__ import annotations

from ci.simulator import sink
from ci.simulator.coverage import coverage
from ci.simulator.ops import decoder_of, members, sync, system, tensor, warp
from ci.simulator.parser import parse
from scripts.simulator_coverage import PAGE, with_table
from tests.simulator.ptx_text import entry


def test_the_page_lists_the_opcodes_that_are_executed() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page) == page, "run python -m scripts.simulator_coverage"


def test_every_opcode_that_a_decoder_exists_for_is_in_one_group() -> None:
    groups = coverage()
    listed = [opcode for opcodes in groups.values() for opcode in opcodes]
    assert {"add", "wmma", "bar", "call", "bra", "fns", "set"} <= set(listed)
    assert "wgmma" not in listed
    kernel = parse(entry("wgmma.fence.sync.aligned;", "")).kernels["k"]
    assert decoder_of(kernel.instructions[0]) is None


def test_the_page_lists_every_kind_of_finding() -> None:
    page = PAGE.read_text(encoding="utf-8")
    kinds = {
        value
        for module in (sink, members, sync, system, tensor, warp)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, str)
    }
    kinds |= {
        f"{fault} {verb}" for fault in ("out-of-bounds", "misaligned") for verb in ("read", "write")
    }
    assert len(kinds) > 18
    assert {kind for kind in kinds if kind not in page} == set()
