"""A stage that needs Hopper, on a machine without one: never a pass, from the check to the page."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASE = "product/02_wgmma[M=32,N=16,K=8]"
REASON = "product/02_wgmma.cu:6: not emulated: wgmma.fence.sync.aligned"

STAGE = """
        CudaStage(
            source="02_wgmma.cu",
            entry="product_wgmma",
            architectures=("sm_90a",),
            launch=lambda size, _: Launch(
                grid=(-(-size["N"] // 16), -(-size["M"] // 8), 1), block=(16, 8, 1)
            ),
            idea="a warpgroup computes a tile of C",
        ),
    ),
)
"""
SOURCE = """// C[M,N] = alpha * A[M,K] B[K,N] + beta * C, float32: begins a Hopper matrix product.
template <bool A_COL, bool B_COL>
__global__ void product_wgmma(int M, int N, int K, float alpha, const float* A, int lda,
                              const float* B, int ldb, float beta, float* C, int ldc) {
  if (threadIdx.x == 0 && blockIdx.x == 0) C[0] = beta;
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
"""


def _flopwatch(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "ci", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_stage_that_is_not_emulated_never_passes_and_is_named_everywhere(tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "tests/fixtures/suites/tiny",
        tmp_path / "kernels",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    (tmp_path / "kernels/product/02_wgmma.cu").write_text(SOURCE)
    ladder = tmp_path / "kernels/product/ladder.py"
    text = ladder.read_text().rstrip()
    assert text.endswith("),\n    ),\n)")
    ladder.write_text(text.removesuffix("\n    ),\n)") + STAGE)

    checked = _flopwatch(tmp_path, "check")
    assert checked.returncode == 1
    (line,) = [line for line in checked.stdout.splitlines() if CASE in line]
    assert line.startswith("NOT_EMULATED")
    assert line.endswith(REASON)
    assert "1 of 2 cases passed" in checked.stdout

    gated = _flopwatch(tmp_path, "gate", "--out", "out")
    assert gated.returncode == 0, gated.stderr
    assert "passed: 1 case (1 NEW); 1 case NOT_EMULATED. Next: run" in gated.stdout
    verdict = json.loads((tmp_path / "out/verdict.json").read_text())
    words = {case["id"]: (case["verdict"], case["reason"]) for case in verdict["cases"]}
    assert words[CASE] == ("NOT_EMULATED", REASON)
    assert "Not emulated" in (tmp_path / "out/report.md").read_text()
    alone = _flopwatch(tmp_path, "gate", "-k", "02_wgmma", "--out", "alone")
    assert alone.returncode == 3
    assert "no case was executed (1 NOT_EMULATED)" in alone.stdout

    site = _flopwatch(tmp_path, "site", "--records", "out/records", "--out", "pages")
    assert site.returncode == 0, site.stderr
    (page,) = (tmp_path / "pages/case").glob("product-02_wgmma*.html")
    shown = page.read_text()
    assert "Not emulated" in shown
    assert REASON in shown
    assert ">Passed<" not in shown
