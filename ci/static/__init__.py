"""What a cubin tells without a GPU: static figures of its kernels."""

from ci.static.disassembly import Disassembly, disassemble, machine_accesses
from ci.static.errors import StaticError
from ci.static.figures import KernelFacts, static_figures

__all__ = [
    "Disassembly",
    "KernelFacts",
    "StaticError",
    "disassemble",
    "machine_accesses",
    "static_figures",
]
