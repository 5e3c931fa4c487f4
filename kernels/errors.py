"""What can be wrong with a suite or its sources. Every message says what, where and what to do."""


class KernelError(Exception):
    """Base of everything this room raises on purpose."""


class DeclarationError(KernelError):
    """A ladder, stage or size is declared wrongly."""


class SuiteLoadError(KernelError):
    """A suite folder cannot be loaded."""


class SourceError(KernelError):
    """A source file is missing, or its includes do not resolve."""


class CompileError(KernelError):
    """NVRTC refused a stage."""

    def __init__(self, message: str, *, log: str = "", file: str = "", line: int = 0) -> None:
        """Keep the compiler's log and the first error's file and line (1-based; 0: unknown)."""
        super().__init__(message)
        self.log = log
        self.file = file
        self.line = line


class ToleranceError(KernelError):
    """A bound says nothing at this size."""


class ToolError(KernelError):
    """A wheel or program this room needs is not installed."""
