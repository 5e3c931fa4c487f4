"""What a worker does to explain a case: build it, count it, and quote the lines concerned."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from ci.check.launch import output_of
from ci.check.run import CaseCheck, check_case, count_case
from ci.measure.messages import Answer, Explain, Explained
from ci.measure.simulating import simulator_for
from ci.results.explanation import Explanation
from ci.results.model import Counters, LineCounters, Status
from kernels.build import WIDTHS_ARCH, build_stage
from kernels.errors import CompileError, SourceError
from kernels.source import quoted_lines
from kernels.spec import Case, CudaStage, Role
from kernels.suite import load_suite


def answer_explain(job: Explain, say: Callable[[Answer], None]) -> None:
    """Count the job's case on the simulator and say what was seen."""
    suite = load_suite(Path(job.suite))
    case = next(case for case in suite.cases() if case.id == job.case)
    if not isinstance(case.stage, CudaStage):
        reason = "a Python callable, which the simulator cannot look into"
        say(Explained(explanation=_explanation(case, _unchecked(Status.SKIPPED, reason), "")))
        return
    cache = Path(job.cache)
    try:
        built = build_stage(
            suite, case.ladder, case.stage, architectures=[WIDTHS_ARCH], cache=cache
        )
    except (CompileError, SourceError) as error:
        log = error.log if isinstance(error, CompileError) else ""
        reason = "\n".join(part for part in (str(error), log) if part)
        check = _unchecked(Status.COMPILE_ERROR, reason)
        say(Explained(explanation=_explanation(case, check, "")))
        return
    device, size = simulator_for(built, cache), case.size.as_dict()
    run = count_case if case.size.role is Role.PERF else check_case
    check = run(device, built, case.ladder, case.stage, size)
    say(Explained(explanation=_explanation(case, check, built.text)))


def _unchecked(status: Status, reason: str) -> CaseCheck:
    return CaseCheck(
        subcheck=None, findings=(), counters=None, lines=(), status=status, reason=reason
    )


def _explanation(case: Case, check: CaseCheck, text: str) -> Explanation:
    """Return what is told of a case; ``text`` is its flattened source."""
    problem, size = case.ladder.problem, case.size.as_dict()
    return Explanation(
        id=case.id,
        status=check.status,
        reason=check.reason,
        counting=(check.counting or "every block executed") if check.counters else "",
        subcheck=check.subcheck,
        findings=check.findings,
        counters=check.counters,
        lines=_with_findings(check, text),
        output=check.output,
        output_elements=math.prod(output_of(problem).extents(size)),
        flops=problem.flops(size),
        compulsory_bytes=problem.compulsory_bytes(size),
    )


def _with_findings(check: CaseCheck, text: str) -> tuple[LineCounters, ...]:
    """Return the lines that count something, and those that only have a finding."""
    lines = {(line.file, line.line): line for line in check.lines}
    quoted = quoted_lines(text)
    for finding in check.findings:
        place = (finding.file, finding.line)
        if finding.line and place not in lines:
            lines[place] = LineCounters(
                file=finding.file,
                line=finding.line,
                text=quoted.get(place, ""),
                counters=Counters(),
            )
    return tuple(lines[place] for place in sorted(lines))
