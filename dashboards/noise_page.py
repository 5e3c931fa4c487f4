"""The noise ledger of one machine. Changes when the ledger's page says more."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from dashboards.formatting import DASH, plural, significant, whole
from dashboards.links import case_path
from dashboards.page_parts import Fact
from dashboards.tables import Badge, Cell, Column, Row, Table

_DIGITS = 2
_QUARANTINED = Badge(word="Quarantined", glyph="?", tone="unsure")
_IN_USE = Badge(word="In use", glyph="=", tone="calm")
_FEW = Badge(word="Too few gates", glyph="·", tone="calm")


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseNoise:
    """What past gates tell about one case."""

    case: str
    deviation: float | None
    """Standard deviation of a round's ln(head / base); None: no gate tells."""
    used: bool
    """Whether enough gates stand behind it for the screen to rely on it."""
    gates: int
    """Gates that timed the case."""
    undecided: int
    """Those of them that had all its rounds and reached no verdict."""
    quarantined: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineNoise:
    """What the gates kept of one machine tell."""

    machine: str
    gates: int
    faulty: int
    """Those of them whose controls failed, so that they tell nothing."""
    cases: tuple[CaseNoise, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class NoisePage:
    """The page of one machine."""

    machine: str
    answer: str
    facts: tuple[Fact, ...]
    table: Table


def noise_page(noise: MachineNoise, paged: Collection[str]) -> NoisePage:
    """Return the page of a machine's noise, the noisiest case first.

    Args:
        noise: What the ledger holds.
        paged: Ids of the cases that have a page of their own.
    """
    ranked = sorted(noise.cases, key=lambda each: (-(each.deviation or 0.0), each.case))
    return NoisePage(
        machine=noise.machine,
        answer=_answer(ranked),
        facts=(
            Fact(label="Gates kept", text=whole(noise.gates)),
            Fact(label="With failed controls", text=whole(noise.faulty), note="they tell nothing"),
        ),
        table=Table(
            caption="Noise of a round",
            shape="stacked",
            columns=(
                Column(label="Case", header=True),
                Column(label="Between rounds", unit="% of time", numeric=True),
                Column(label="Gates", unit="gates", numeric=True),
                Column(label="Undecided", unit="gates", numeric=True),
                Column(label="State"),
            ),
            rows=tuple(_row(each, paged) for each in ranked),
        ),
    )


def _answer(ranked: Sequence[CaseNoise]) -> str:
    held = [each.case for each in ranked if each.quarantined]
    if held:
        return f"{plural(len(held), 'case')} in quarantine, which decide no gate."
    if not ranked or ranked[0].deviation is None:
        return "No gate tells yet how noisy a case is."
    return f"No case is in quarantine; the noisiest is {ranked[0].case}."


def _row(noise: CaseNoise, paged: Collection[str]) -> Row:
    badge = _QUARANTINED if noise.quarantined else _IN_USE if noise.used else _FEW
    shown = DASH if noise.deviation is None else significant(100 * noise.deviation, _DIGITS)
    link = f"../{case_path(noise.case)}" if noise.case in paged else ""
    return Row(
        cells=(
            Cell(text=noise.case, href=link),
            Cell(text=shown),
            Cell(text=whole(noise.gates)),
            Cell(text=whole(noise.undecided)),
            Cell(badge=badge),
        ),
        marked=noise.quarantined,
    )
