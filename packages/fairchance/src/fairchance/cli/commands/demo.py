"""``fairchance demo``: a program on the record, in a world in which the past overlooked a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairchance.cli.options import Json, errors
from fairchance.cli.output import Console, counting_bar, print_json, print_table
from fairchance.errors import InputError, writing
from fairchance.extras import arrow
from fairchance.words import amount, counted, percent
from fairchance.words.rounds import certificates_assume, promised, ramp_words, sentence

if TYPE_CHECKING:  # slow to import
    from fairchance.cli.live import LiveMonth
    from fairchance.core.decisions import Decisions
    from fairchance.ledger.program import Program
    from fairchance.ledger.summary import Summary

_ALPHA, _DELTA, _GAIN, _LOSS = 0.15, 0.1, 200, 500
_HISTORY, _APPLICANTS, _MONTHS = 2000, 500, 18  # a few seconds, and time for a certificate to pay
_OVERLOOKED, _OTHER = "B", "A"
REASONS = {
    "income": {"code": "R1", "text": "Your income is low for this loan."},
    "debt": {"code": "R2", "text": "Your debts speak against this loan."},
    "years": {"code": "R3", "text": "You have been in your job for a short time."},
}
_QUARTER = 3  # months in a row of the table
_MONTH_LASTS = 6.0  # seconds, with --live
_LEDGER, _PAGE = "ledger.db", "program.html"
_MARK = ".fairchance-demo"  # a folder with this file is the demo's, and may be made anew
_OWN = {_MARK, _PAGE, *(f"{_LEDGER}{ending}" for ending in ("", "-wal", "-shm", "-journal"))}


@dataclass(frozen=True)
class Month:
    """Counts of one month, by group, and what was earned.

    Attributes
    ----------
    certified
        Whether the month's policy is certified.
    applied, accepted, bad
        Number of applicants of each group, of those the program accepted, and of the bad among
        these.
    earned, past_earned
        What the program earned, and what the history's policy would earn on average from the same
        applicants, which only a simulation can know.
    """

    certified: bool
    applied: dict[str, int]
    accepted: dict[str, int]
    bad: dict[str, int]
    earned: float
    past_earned: float


def demo(
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="A new folder for the ledger and the report."),
    ] = Path("demo"),
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Serve a program that a simulated lender asks, and show its dashboard."
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Show a certified program in a simulated world whose past overlooked a group.

    With --live, a lender's 17 months pass in two minutes, on a dashboard: shadow mode, the ramp,
    the first certificate, and a change for the worse. It goes on until it is stopped (Ctrl-C).

    Example: fairchance demo -o demo
    """
    with errors(json):
        _check_folder(out)
        from sqlalchemy import URL  # noqa: PLC0415 - an extra

        if live:
            with writing(out):
                _make_folder(out)
            _live(URL.create("sqlite", database=str(out / _LEDGER)).render_as_string(), json)
            return
        from fairchance.ledger.summary import read_details, summarise  # noqa: PLC0415
        from fairchance.pages.program import write_program_report  # noqa: PLC0415 - an extra

        with writing(out):
            _make_folder(out)
        url = URL.create("sqlite", database=str(out / _LEDGER)).render_as_string()
        page = out / _PAGE
        with counting_bar("months", json) as progress:
            program, before, months = _lend(url, progress)
        summary = summarise(program.ledger)
        write_program_report(summary, read_details(program.ledger, summary), page, late=180.0)
        since = _certified_since(months)
        if json:
            print_json(
                {
                    "certified_since": since,
                    "earned": sum(month.earned for month in months),
                    "past_earned": sum(month.past_earned for month in months),
                    "accepted_before": before,
                    "months": [asdict(month) for month in months],
                    "ledger": url,
                    "report": page,
                    "checkpoint": str(summary.head),
                }
            )
        else:
            _print(Console(), summary, since, before, months)
            _print_places(Console(), url, page)


def _check_folder(folder: Path) -> None:
    """Raise unless a folder is new, empty or the demo's own."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{{option}} must be a folder, got {str(folder)!r}.", option="out")
    found = {file.name for file in folder.iterdir()}
    other = sorted(found - _OWN if _MARK in found else found)
    if other:
        raise InputError(
            f"{{option}} must be a new folder or an earlier demo's, got {str(folder)!r} with "
            f"{other[0]!r}.",
            option="out",
        )


def _make_folder(folder: Path) -> None:
    """Make a folder, or empty the demo's own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _MARK).touch()
    for file in folder.iterdir():
        if file.name != _MARK:
            file.unlink()


def _lend(
    url: str, progress: Callable[[int, int], None] | None
) -> tuple[Program, tuple[int, int], list[Month]]:
    """Run a certified program on a new ledger through all months.

    Returns
    -------
    tuple
        The program, how many of the overlooked group the past accepted and how many applied, and
        the months.
    """
    import numpy as np  # noqa: PLC0415 - all slow to import

    import fairchance as fc  # noqa: PLC0415
    from fairchance.ledger.program import Program  # noqa: PLC0415
    from fairchance.simulate.histories import ByPolicy, GroupExcluding  # noqa: PLC0415
    from fairchance.simulate.populations import Lender  # noqa: PLC0415
    from fairchance.simulate.run import run  # noqa: PLC0415
    from fairchance.simulate.streams import Drawn  # noqa: PLC0415
    from fairchance.simulate.worlds import World  # noqa: PLC0415

    # Both groups have the same incomes and repay alike; debt is risky if very low or high.
    lender = Lender(curvature=0.6, income_gap=0.0, past_penalty=0.0, past_intercept=1.0)
    past = ByPolicy(lender.probability_accepted_before) & GroupExcluding(_OVERLOOKED, rate=0.0)
    world = World(Drawn(lender, _APPLICANTS, _MONTHS, _HISTORY), past, seed=0)
    history = world.history()
    utility = fc.Revenue(_GAIN, _LOSS)
    classifier = fc.CertifiedClassifier(_ALPHA, _DELTA, utility, horizon=_MONTHS, random_state=0)
    program = Program.create(
        url,
        classifier,
        _named(history.people.X),
        history.outcomes,
        accepted=history.accepted,
        sensitive_features=history.people.group,
        name="demo",
        about={"reasons": REASONS},
    )
    months = []
    for result in run(_Desk(program), world):
        applicants, accepted = result.applicants, result.decided.accepted
        worth = np.where(applicants.outcome == 1, _GAIN, -_LOSS)
        groups = {name: applicants.people.group == name for name in lender.groups}
        bad = accepted & (applicants.outcome == 0)
        months.append(
            Month(
                result.decided.certified,
                {name: int(members.sum()) for name, members in groups.items()},
                {name: int((members & accepted).sum()) for name, members in groups.items()},
                {name: int((members & bad).sum()) for name, members in groups.items()},
                float(worth[accepted].sum()),
                float(past.probability(applicants, lender.features) @ worth),
            )
        )
        if progress is not None:
            progress(len(months), _MONTHS)
    overlooked = history.people.group == _OVERLOOKED
    before = int(history.accepted[overlooked].sum()), int(overlooked.sum())
    return program, before, months


class _Desk:
    """A program as a method of the simulator, with named columns and months."""

    def __init__(self, program: Program) -> None:
        self.program, self._month = program, 0

    def decide(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> Decisions:
        self._month += 1
        return self.program.decide(
            _named(X),
            sensitive_features=sensitive_features,
            ids=ids,
            batch=f"month {self._month}",
        )

    def observe(self, ids: Any, outcomes: Any) -> None:
        self.program.observe(ids, outcomes)


def _named(X: Any) -> Any:
    """Return features as a table with the names of their columns."""
    return arrow().table(dict(zip(("income", "debt", "years"), X.T, strict=True)))


def _certified_since(months: Sequence[Month]) -> int | None:
    """Return the first of the months from which on all are certified.

    Examples
    --------
    >>> pilot, certified = (Month(known, {}, {}, {}, 0.0, 0.0) for known in (False, True))
    >>> _certified_since([pilot, certified, certified]), _certified_since([certified, pilot])
    (2, None)
    """
    n = 0
    while n < len(months) and months[-1 - n].certified:
        n += 1
    return len(months) - n + 1 if n else None


def _print(
    console: Console,
    summary: Summary,
    since: int | None,
    before: tuple[int, int],
    months: Sequence[Month],
) -> None:
    """Print the verdict, then the months by quarter."""
    verdict = promised(summary.rounds[-1].certificates[0])
    if since is not None:
        verdict = f"since month {since} {verdict} under the rule of each month"
    console.print(sentence(verdict), style="bold")
    earned, past = (sum(getattr(m, name) for m in months) for name in ("earned", "past_earned"))
    console.print(
        f"Earned {amount(earned)} in {counted(len(months), 'month')}; from the same applicants, "
        f"the history's policy would earn {amount(past)} on average."
    )
    now = [_total(months[-_QUARTER:], name, _OVERLOOKED) for name in ("accepted", "applied", "bad")]
    console.print(
        f"Group {_OVERLOOKED}: the past accepted {before[0]:,} of {before[1]:,} applicants; in the "
        f"last {counted(_QUARTER, 'month')} the program accepted {now[0]:,} of {now[1]:,}, and "
        f"{now[2]:,} of these were bad."
    )
    rows = [
        _cells(f"{at + 1}–{at + _QUARTER}", months[at : at + _QUARTER])
        for at in range(0, len(months), _QUARTER)
    ]
    titles = ("months", f"{_OTHER} accepted", f"{_OVERLOOKED} accepted", "bad", "earned", "past")
    print_table(console, "By quarter", titles, rows)
    console.print(
        f"Simulated applicants of two groups that repay equally often: a good loan earns {_GAIN}, "
        f"a bad one loses {_LOSS}. The past accepted by income, and nobody of group {_OVERLOOKED}. "
        f"Only a simulation knows what it would earn; the report has what it did earn.",
        style="dim",
    )
    console.print(certificates_assume(summary), style="dim", soft_wrap=True)


def _cells(name: str, months: Sequence[Month]) -> list[str]:
    rates = [
        _total(months, "accepted", group) / _total(months, "applied", group)
        for group in (_OTHER, _OVERLOOKED)
    ]
    bad, accepted = (_total(months, what, _OTHER, _OVERLOOKED) for what in ("bad", "accepted"))
    shares = [*rates, bad / accepted if accepted else float("nan")]
    money = [sum(m.earned for m in months), sum(m.past_earned for m in months)]
    return [name, *map(percent, shares), *map(amount, money)]


def _total(months: Iterable[Month], what: str, *groups: str) -> int:
    return sum(getattr(month, what)[group] for month in months for group in groups)


def _print_places(console: Console, url: str, page: Path) -> None:
    """Print where the report is, and commands that read the ledger."""
    console.print(f"Report: {page.resolve()}", soft_wrap=True)
    console.print(f"On the record: fairchance status {quote(url)}", soft_wrap=True)
    console.print(f"Its proof: fairchance verify {quote(url)}", soft_wrap=True)
    console.print("Live, on a dashboard: fairchance demo --live", soft_wrap=True)


def _live(url: str, json: bool) -> None:
    """Serve a program, and say what a simulated lender does with it."""
    from fairchance.cli.live import MONTHS, LiveLender  # noqa: PLC0415 - an extra

    console = Console()
    if not json:
        console.print("Making a program from the lender's past …")
    lender, months = LiveLender(url), []
    with suppress(KeyboardInterrupt), lender.served():
        if not json:
            console.print(f"Dashboard: {lender.address}", style="bold", soft_wrap=True)
            console.print(f"Pause it from another terminal: fairchance pause --ledger {quote(url)}")
        for month in lender.months(MONTHS, 0.0 if json else _MONTH_LASTS):
            months.append(month)
            if not json:
                _print_live(console, months)
        if json:
            print_json({"address": lender.address, "months": [asdict(month) for month in months]})
            return
        console.print("The lender rests; the dashboard stays until Ctrl-C.")
        Event().wait()


def _print_live(console: Console, months: Sequence[LiveMonth]) -> None:
    """Print the last month, and what it began with."""
    from fairchance.cli.live import MONTHS, WORSE_FROM  # noqa: PLC0415 - an extra

    *before, now = months
    was = before[-1] if before else None
    if was is None or was.ramp != now.ramp:
        console.print(f"• {sentence(ramp_words(now.ramp))}", soft_wrap=True)
    if was and was.status != now.status == "certified":
        console.print("• Its own policy is certified and replaces the lender's.", style="green")
    if was and was.status == "certified" != now.status:
        console.print("• The outcomes speak against the certificate: it is dropped.", style="red")
    if now.month == WORSE_FROM:
        console.print("• From now on more applicants fail to repay, which shows in months.")
    console.print(
        f"Month {now.month} of {MONTHS}: {now.n_accepted:,} of {now.n_people:,} accepted "
        f"({now.status})."
    )
