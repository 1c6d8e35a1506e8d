"""``fairchance plan``: estimate how long a certificate takes."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairchance.cli.options import Jobs, Json, check_jobs, errors, names
from fairchance.cli.output import Console, counting_bar, print_json, print_table
from fairchance.errors import InputError
from fairchance.words import amount, share

if TYPE_CHECKING:  # slow to import
    from fairchance.cli.files.histories import PastApplications
    from fairchance.ledger.config import Labels
    from fairchance.simulate.people import Table
    from fairchance.simulate.plan import UntilCertified
    from fairchance.simulate.streams import Stream

_SHOWN = 5  # values of an outcome in a sentence


def plan(
    alpha: Annotated[float, typer.Option(help="Bound on the share of bad outcomes.")] = 0.15,
    delta: Annotated[float, typer.Option(help="Probability of breaking it.")] = 0.1,
    good: Annotated[float, typer.Option(help="Share of good applicants.")] = 0.7,
    auc: Annotated[float, typer.Option(help="AUC of the score.")] = 0.75,
    people: Annotated[int, typer.Option(help="Applicants per round.")] = 500,
    rounds: Annotated[int, typer.Option(help="Rounds to plan for.")] = 40,
    groups: Annotated[str, typer.Option(help="Groups with their shares: A=0.8,B=0.2.")] = "",
    gain: Annotated[float, typer.Option(help="Gain from a good accepted applicant.")] = 200.0,
    loss: Annotated[float, typer.Option(help="Loss from a bad accepted applicant.")] = 500.0,
    history: Annotated[
        Path | None, typer.Option(help="Simulate from your csv or parquet file instead of rates.")
    ] = None,
    outcome: Annotated[str, typer.Option(help="With a file: its outcome column.")] = "",
    group: Annotated[str, typer.Option(help="With a file: its group column.")] = "",
    accepted: Annotated[
        str,
        typer.Option(
            help="With a file: the column of past decisions; outcomes of rejected applicants are "
            "not read. Default: all applicants with an outcome were accepted."
        ),
    ] = "",
    good_outcome: Annotated[
        str, typer.Option(help="With a file: which outcome is good; not needed for 1 and 0.")
    ] = "",
    features: Annotated[
        str,
        typer.Option(help="With a file: the features; default all other columns but identifiers."),
    ] = "",
    delay: Annotated[
        str,
        typer.Option(
            help="Rounds until an outcome is known, least and most: 3-9, or one number; 0 is "
            "before the next round."
        ),
    ] = "0",
    maturity: Annotated[
        int, typer.Option(help="Rounds before a round is tested, as the program will have it.")
    ] = 0,
    patience: Annotated[
        int | None,
        typer.Option(
            help="Rounds after which a missing outcome counts as bad, as the program will have it; "
            "default one more than the longest delay."
        ),
    ] = None,
    repetitions: Annotated[int, typer.Option(help="Simulated runs.")] = 20,
    jobs: Jobs = -1,
    json: Json = False,
) -> None:
    """Estimate how long a certificate takes, what it costs until then, and what other bounds earn.

    Example: fairchance plan --good 0.7 --auc 0.75 --people 500 --groups A=0.8,B=0.2
    """
    with errors(json):
        if history is not None and not (outcome and group):
            raise InputError("a file needs --outcome and --group: the names of its columns.")
        if history is None and (outcome or group or accepted or good_outcome or features):
            raise InputError(
                "--outcome, --group, --accepted, --good-outcome and --features are about a file; "
                "name it with --history."
            )
        check_jobs(jobs)
        shares = _shares(groups)
        least, most = _delay(delay, rounds)
        if patience is None and most:
            patience = most + 1
        from fairchance.simulate.feedback import Between  # noqa: PLC0415
        from fairchance.simulate.plan import Plan  # noqa: PLC0415
        from fairchance.simulate.plan import plan as make_plan  # noqa: PLC0415
        from fairchance.simulate.populations import Binormal  # noqa: PLC0415
        from fairchance.simulate.streams import (  # noqa: PLC0415 - slow to import
            Drawn,
            Resampled,
            repeated_rows_remarks,
        )

        console, about = Console(), None
        if history is not None:
            past = read_past(history, outcome, group, accepted, good_outcome, names(features))
            table = accepted_table(past, history, outcome, group)
            stream: Stream = Resampled(table, people, rounds)
            n_drawn = people * (rounds + 1)
            about = past.as_dict() | {"people_drawn": n_drawn}
            for line in (
                [] if json else [*_lines(past), *repeated_rows_remarks(len(table), n_drawn)]
            ):
                console.print(line, soft_wrap=True)
        else:
            stream = Drawn(Binormal(good, auc, shares), people, rounds)
        wanted = Plan(
            stream,
            alpha,
            delta,
            gain,
            loss,
            group_as_feature=True,
            repetitions=repetitions,
            delay=Between(least, most),
            maturity=maturity,
            patience=patience,
        )
        with counting_bar("repetitions", json) as progress:
            estimates = make_plan(wanted, jobs=jobs, progress=progress)
        late = Late(least, most, maturity, patience)
        print_plan(console, estimates, json, about, late)


def read_past(
    path: Path, outcome: str, group: str, accepted: str, good: str, features: tuple[str, ...]
) -> PastApplications:
    """Read a history as ``init`` does, but without a configuration and without ids."""
    from fairchance.cli.files.histories import past_applications  # noqa: PLC0415 - slow
    from fairchance.cli.files.refusals import commonest  # noqa: PLC0415
    from fairchance.cli.files.rows import check_there  # noqa: PLC0415
    from fairchance.cli.files.tables import Sent, read_sent  # noqa: PLC0415
    from fairchance.extras import arrow  # noqa: PLC0415
    from fairchance.ledger.config import MISSING, Config, Roles  # noqa: PLC0415

    roles = [outcome, group, *([accepted] if accepted else [])]
    # The group is a feature of every plan.
    others = tuple(dict.fromkeys(name for name in features if name != group))
    if len({*roles}) < len(roles) or {*roles} & {*others} or (features and not others):
        raise InputError(
            "--outcome, --group, --accepted and --features must name different columns, got "
            f"{', '.join(map(repr, [*roles, *features]))}; name each one once."
        )
    sent = read_sent(str(path), text=roles)
    check_there(sent.table, roles, path.name)
    row = "row"
    while row in sent.table.column_names:
        row += "_"
    ids = arrow().array(map(str, range(sent.table.num_rows)), arrow().string())
    config = Config(
        source="the options",
        name="plan",
        roles=Roles(row, outcome, accepted or None, (group,), others),
        texts=(),
        missing_values=(),
        missing=MISSING[0],
        labels=_labels(sent.table, outcome, accepted, good),
        settings={"kind": "certified"},
        limits={},
        checks={},
    )
    with_ids = Sent(sent.table.append_column(row, ids), sent.as_written)
    past = past_applications(with_ids, config, path.name)
    n_good, n_refused = past.good.sum(), len(past.refused)
    if 2 * n_refused > sent.table.num_rows or not 0 < n_good < past.accepted.sum():
        raise InputError(
            f"{n_refused:,} of {sent.table.num_rows:,} rows of {path.name} are refused, "
            f"{commonest(past.refused)}; a plan needs half of the rows, and good and bad outcomes "
            f"among them, so correct the file or the options."
        )
    return past


def _labels(table: Any, outcome: str, accepted: str, good: str) -> Labels:
    """Return which of the two outcomes of applicants who were not rejected is good."""
    from fairchance.cli.files.rows import truth_values  # noqa: PLC0415 - slow
    from fairchance.extras import arrow  # noqa: PLC0415
    from fairchance.ledger.config import Labels  # noqa: PLC0415

    column = table[outcome]
    if accepted:
        column = column.filter(arrow().array(truth_values(table[accepted]) != "no"))
    known = sorted({*map(Labels.canonical, column.drop_null().unique().to_pylist())})
    if len(known) != 2:
        shown = ", ".join(map(repr, known[:_SHOWN])) + ", …" * (len(known) > _SHOWN)
        raise InputError(
            f"the outcome {outcome!r} (--outcome) must have exactly two values where it is known, "
            f"got {len(known)}{': ' * bool(known)}{shown}; leave unknown outcomes empty, or merge "
            f"some values."
        )
    clear = known in (["0", "1"], ["false", "true"])
    best = Labels.canonical(good) if good or not clear else known[1]
    if best not in known:
        raise InputError(
            f"the outcome {outcome!r} has the values {known[0]!r} and {known[1]!r}; name the good "
            f"one with --good-outcome, got {good!r}."
        )
    (bad,) = {*known} - {best}
    return Labels((best,), (bad,))


def accepted_table(past: PastApplications, path: Path, outcome: str, group: str) -> Table:
    """Return the accepted applicants, with features as numbers; text becomes columns of 0 and 1."""
    import numpy as np  # noqa: PLC0415 - slow

    from fairchance.people.columns import TableColumns  # noqa: PLC0415
    from fairchance.simulate.people import Table  # noqa: PLC0415

    rows = past.table.filter(past.accepted)
    X = rows.select(list(past.columns.names or ()))
    columns = TableColumns.of(X)
    numbers, expansion = columns.codes(X), columns.expansion(allow_missing=False)
    titles = [X.column_names[at] for at in columns.kept]
    if expansion is not None:
        owners = [titles[at] for at in expansion.owners]
        titles = [f"{name} {owners[:at].count(name)}" for at, name in enumerate(owners)]
        numbers = expansion.numbers(numbers)
    return Table(
        name=path.stem,
        source=f"{rows.num_rows:,} rows of the file {path.name}; groups are the values of {group}, "
        f"outcomes those of {outcome}.",
        features=tuple(titles),
        X=numbers.astype(np.float64, copy=False),
        group=np.array(rows[group].to_pylist(), np.str_),
        outcome=past.good[past.accepted].astype(np.int8),
    )


def _lines(past: PastApplications) -> list[str]:
    """Describe the rows and columns of a history that are used, and those that are not."""
    from fairchance.cli.files.histories import columns_message  # noqa: PLC0415 - slow
    from fairchance.cli.files.refusals import refused_counts, refused_message  # noqa: PLC0415

    lines = [*past.lines(), *refused_message(refused_counts(past.refused, None))]
    lines += columns_message(past.found, "with --features")
    if not past.accepted.all():
        lines.append(
            "Planned as if all applicants were like the accepted ones; if others are worse, it "
            "takes longer and costs more."
        )
    return lines


def _delay(text: str, rounds: int) -> tuple[int, int]:
    """Return the least and the most rounds that an outcome takes.

    Examples
    --------
    >>> _delay("3-9", 40), _delay("2", 40)
    ((3, 9), (2, 2))
    """
    parts = re.fullmatch(r"\s*(\d+)\s*(?:[-–]\s*(\d+)\s*)?", text, re.ASCII)
    if parts is None:
        raise InputError(
            f"--delay counts rounds and must look like 3-9, or be one number such as 3, got "
            f"{text!r}."
        )
    least, most = int(parts[1]), int(parts[2] or parts[1])
    if most < least:
        raise InputError(
            f"--delay takes the least first, then the most, got {text!r}; write {most}-{least}."
        )
    if least and least >= rounds:
        raise InputError(
            f"an outcome that takes {least} rounds or more comes after the last of {rounds} "
            f"rounds; plan for more with --rounds, or shorten --delay."
        )
    return least, most


def _shares(text: str) -> tuple[tuple[str, float], ...]:
    if not text:
        return (("everybody", 1.0),)
    try:
        pairs = [part.split("=") for part in names(text)]
        return tuple((name.strip(), float(share)) for name, share in pairs)
    except ValueError:
        raise InputError(f"groups must look like A=0.8,B=0.2, got {text!r}.") from None


@dataclass(frozen=True)
class Late:
    """How many rounds outcomes take in a plan, and how long the planned program waits for them."""

    least: int = 0
    most: int = 0
    maturity: int = 0
    patience: int | None = None

    def lines(self) -> list[str]:
        """Describe how late outcomes arrive, and which of them count as bad.

        Examples
        --------
        >>> print(*Late(3, 9, patience=10).lines())
        Outcomes come 3 to 9 rounds after the decision, all of them and right (maturity 0, \
patience 10).
        """
        if not self.most:
            return [
                "As if every outcome were known before the next round; --delay says how late they "
                "come."
            ]
        after = f"{self.least} to {self.most}" if self.least < self.most else f"{self.most}"
        waits = "none" if self.patience is None else self.patience
        lines = [
            f"Outcomes come {after} round{'s' * (self.most > 1)} after the decision, all of them "
            f"and right (maturity {self.maturity}, patience {waits})."
        ]
        if self.patience is not None and self.patience <= self.most:
            lines.append(
                f"With patience {self.patience}, outcomes that take {self.patience} rounds or "
                f"more count as bad: a patience above {self.most} waits for all."
            )
        return lines

    def as_dict(self) -> dict[str, Any]:
        """Return the delays as plain data for JSON."""
        fields = asdict(self)
        return {"delay": {name: fields.pop(name) for name in ("least", "most")}, **fields}


def print_plan(
    console: Console,
    estimates: list[UntilCertified],
    json_wanted: bool,
    history: dict[str, Any] | None = None,
    late: Late | None = None,
) -> None:
    """Print the estimates until a certificate."""
    late = Late() if late is None else late
    if json_wanted:
        plan: dict[str, Any] = {
            "certificate": [asdict(estimate) for estimate in estimates],
            **late.as_dict(),
        }
        if history is not None:
            plan["history"] = history
        print_json(plan)
        return
    rows = []
    for estimate in estimates:
        figures = (estimate.rounds, estimate.accepted, estimate.explored, estimate.lost_on_bad)
        cells = [
            f"{median:,.0f} ({low:,.0f}–{high:,.0f})" if math.isfinite(median) else "–"
            for low, median, high in figures
        ]
        rows.append([estimate.whom, f"{estimate.share_certified:.0%}", *cells])
    title = "Until the first certificate, median (5 % to 95 %)"
    titles = ("for", "reached", "rounds", "accepted", "explored", "lost on bad")
    print_table(console, title, titles, rows)
    console.print(
        "reached: share of simulated runs of the certified method that did; the rest is of these. "
        "What is accepted and lost before the certificate is the pilot's, and carries no promise.",
        style="dim",
    )
    _print_curve(console, estimates[0])
    for line in late.lines():
        console.print(line)


def _print_curve(console: Console, estimate: UntilCertified) -> None:
    """Print what the rule would earn at other bounds."""
    if not estimate.curve:
        return
    rows = [
        [
            f"{point.bound:.3g}",
            f"{point.share_certified:.0%}",
            f"{point.share:.1%}",
            amount(point.earned),
            share(point.estimated_fdr),
        ]
        for point in estimate.curve
    ]
    titles = ("bound", "certified", "best share", "earned per applicant", "estimated FDR")
    print_table(console, "At the end of the plan, by bound on mistakes; means", titles, rows)
    console.print(
        "certified: share of runs with a certificate at this bound, each bound by itself. Other "
        "bounds are read off the outcomes of decisions made at the planned one; a program with "
        "another bound would explore elsewhere.",
        style="dim",
    )
