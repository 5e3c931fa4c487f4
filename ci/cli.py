"""The command line: parses, calls one verb, prints errors as one line, returns the exit code."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence

from ci.devices.errors import DeviceError
from ci.errors import EXIT_INTERRUPTED, CiError
from ci.gate.errors import GateError
from ci.measure.errors import MeasureError
from ci.report.errors import ReportError
from ci.results.errors import ResultsError
from ci.static.errors import StaticError
from ci.verbs import (
    check,
    compare,
    doctor,
    explain,
    gate,
    listing,
    measure,
    report,
    site,
    store,
    tune,
)
from ci.verbs.context import Request
from dashboards.errors import SiteFolderError
from kernels.errors import KernelError

EXIT_CODES = """\
exit codes: 0 passed; 1 failed (regression, incorrect, error, missing; also a full disk);
2 usage or configuration; 3 undecided; 130 Ctrl-C or SIGTERM. Finished work is always kept."""

EXIT_FAILED = 1
EXIT_USAGE = 2

_REFUSALS = (
    CiError,
    DeviceError,
    MeasureError,
    ResultsError,
    GateError,
    StaticError,
    KernelError,
    ReportError,
)
"""What a user asked for that cannot be done: one base a room."""

Verb = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the process's exit code."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    arguments = _parser().parse_args(argv)
    verb: Verb = arguments.verb
    if threading.current_thread() is threading.main_thread():
        # Whoever cancels a job ends it by SIGTERM: what is finished is kept then as well.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = verb(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = _end("interrupted: what was finished is kept", EXIT_INTERRUPTED)
    except _REFUSALS as error:
        code = _end(str(error), EXIT_USAGE)
    except SiteFolderError as error:
        code = _end(str(error), EXIT_FAILED)
    except BrokenPipeError:
        # The reader of standard output has gone (flopwatch list | head): nothing left to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_FAILED
    except OSError as error:
        code = _end_of_system_error(error)
    return code


def _end_of_system_error(error: OSError) -> int:
    where = f": {error.filename}" if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        sentence = (
            f"no space left on the disk{where} "
            "(free some and run again; what was finished before is kept)"
        )
        return _end(sentence, EXIT_FAILED)
    return _end(f"{error.strerror or error}{where} (check the path and its rights)", EXIT_USAGE)


def _end(sentence: str, code: int) -> int:
    sys.stderr.write(f"flopwatch: {sentence}\n")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="flopwatch",
        description="Watches the speed and the correctness of CUDA kernels, commit by commit.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for name, summary, build in _VERBS:
        sub = verbs.add_parser(
            name,
            help=summary,
            description=summary,
            epilog=EXIT_CODES,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        build(sub)
    return parser


def _running(sub: argparse.ArgumentParser) -> None:
    """Add what every verb that runs kernels takes."""
    _selecting(sub)
    sub.add_argument("--device", choices=("auto", "cuda", "simulator"), default="auto")
    sub.add_argument(
        "--arch",
        default="sm_90",
        help="architectures to compile for, comma-separated, or all (default: %(default)s)",
    )


def _selecting(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--suite", default="kernels", help="the suite's folder in a checkout (default: %(default)s)"
    )
    sub.add_argument(
        "-k",
        dest="selection",
        default="",
        metavar="EXPR",
        help="cases whose id matches, as in pytest",
    )


def _formatted(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--format", choices=("text", "json", "markdown"), default="text")


def _request(arguments: argparse.Namespace) -> Request:
    return Request(
        suite=arguments.suite,
        device=arguments.device,
        arch=arguments.arch,
        selection=arguments.selection,
    )


def _list(sub: argparse.ArgumentParser) -> None:
    _selecting(sub)
    _formatted(sub)
    sub.set_defaults(
        verb=lambda a: listing.run(suite=a.suite, selection=a.selection, form=a.format)
    )


def _check(sub: argparse.ArgumentParser) -> None:
    _running(sub)
    _formatted(sub)
    sub.set_defaults(verb=lambda a: check.run(_request(a), form=a.format))


def _measure(sub: argparse.ArgumentParser) -> None:
    _running(sub)
    sub.add_argument("--revision", help="what to measure (default: the working tree)")
    sub.add_argument(
        "--records", default="records", help="folder of the records (default: %(default)s)"
    )
    sub.set_defaults(
        verb=lambda a: measure.run(_request(a), revision=a.revision, records=a.records)
    )


def _gate(sub: argparse.ArgumentParser) -> None:
    _running(sub)
    _formatted(sub)
    side = "revision, folder, or FOLDER@COMMIT"
    sub.add_argument("--base", metavar="SIDE", help=f"{side} (default: HEAD, or its parent)")
    sub.add_argument("--head", metavar="SIDE", help=f"{side} (default: the working tree)")
    sub.add_argument(
        "--out", default="gate-out", help="folder of the results (default: %(default)s)"
    )
    sub.add_argument(
        "--measure-identical", action="store_true", help="time identical code too (cuda)"
    )
    sub.add_argument(
        "--setting",
        choices=tuple(gate.SETTINGS),
        default="standard",
        help="margins of the timing rule (default: %(default)s)",
    )
    sub.add_argument(
        "--budget",
        type=float,
        default=900.0,
        metavar="SECONDS",
        help="time for timing; what is open then is inconclusive (default: %(default)s)",
    )
    sub.set_defaults(
        verb=lambda a: gate.run(
            _request(a),
            gate.TimingRequest(
                measure_identical=a.measure_identical, setting=a.setting, budget_s=a.budget
            ),
            base=a.base,
            head=a.head,
            out=a.out,
            form=a.format,
        )
    )


def _compare(sub: argparse.ArgumentParser) -> None:
    _formatted(sub)
    sub.add_argument("base", help="record file of the base")
    sub.add_argument("head", help="record file of the head")
    sub.set_defaults(verb=lambda a: compare.run(a.base, a.head, form=a.format))


def _site(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--records",
        action="append",
        help="folder of records; may be repeated (default: records)",
    )
    sub.add_argument(
        "--verdict", action="append", default=[], help="a verdict.json to show; may be repeated"
    )
    sub.add_argument(
        "--out", default="build/site", help="folder of the pages (default: %(default)s)"
    )
    sub.set_defaults(
        verb=lambda a: site.run(records=a.records or ["records"], verdicts=a.verdict, out=a.out)
    )


def _report(sub: argparse.ArgumentParser) -> None:
    what = sub.add_mutually_exclusive_group(required=True)
    what.add_argument("--verdict", metavar="FILE", help="the verdict.json to report")
    what.add_argument(
        "--pending",
        action="store_true",
        help="check the benchmark request and mark its commit as being measured",
    )
    sub.add_argument(
        "--suite", default="kernels", help="the suite's folder in a checkout (default: %(default)s)"
    )
    sub.set_defaults(
        verb=lambda a: report.announce() if a.pending else report.run(a.verdict, suite=a.suite)
    )


def _store(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("records", help="folder of the records")
    sub.add_argument("--branch", default="perf-data", help="(default: %(default)s)")
    sub.set_defaults(verb=lambda a: store.run(a.records, branch=a.branch))


def _explain(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("case", help="a case id of flopwatch list")
    sub.add_argument(
        "--suite", default="kernels", help="the suite's folder in a checkout (default: %(default)s)"
    )
    _formatted(sub)
    sub.set_defaults(verb=lambda a: explain.run(a.case, suite=a.suite, form=a.format))


def _tune(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("ladder", help="whose stages with a tile_space are searched")
    sub.add_argument(
        "--suite", default="kernels", help="the suite's folder in a checkout (default: %(default)s)"
    )
    sub.add_argument("--out", default="tune", help="folder of the records (default: %(default)s)")
    sub.set_defaults(verb=lambda a: tune.run(a.ladder, suite=a.suite, out=a.out))


def _doctor(sub: argparse.ArgumentParser) -> None:
    sub.set_defaults(verb=lambda _: doctor.run())


_VERBS: tuple[tuple[str, str, Callable[[argparse.ArgumentParser], None]], ...] = (
    ("list", "List suites, ladders, stages and cases.", _list),
    ("check", "Check the correctness of every stage.", _check),
    ("measure", "Check, count and record one revision.", _measure),
    ("gate", "Compare base and head and say whether head may pass.", _gate),
    ("compare", "Compare two records.", _compare),
    ("explain", "Show counters and findings beside the source lines of a case.", _explain),
    ("site", "Build the static dashboard from records.", _site),
    ("report", "Report a verdict on GitHub, from inside a workflow.", _report),
    ("store", "Append records to the branch that keeps them.", _store),
    ("tune", "Search tile parameters on this GPU.", _tune),
    ("doctor", "Say what this machine can and cannot do, and why.", _doctor),
)
