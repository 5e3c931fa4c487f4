"""Writes the table of executed opcodes into ``docs/simulator.md``.

``python -m scripts.simulator_coverage``; ``tests/simulator/test_coverage.py`` compares.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ci.simulator.coverage import coverage_table

PAGE = Path(__file__).parents[1] / "docs" / "simulator.md"
_TABLE = re.compile(r"(<!-- coverage: [^\n]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)


def with_table(page: str) -> str:
    """Return the page with the table as it is now."""
    return _TABLE.sub(lambda found: found[1] + coverage_table() + found[3], page, count=1)


def main() -> int:
    """Rewrite the page."""
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
