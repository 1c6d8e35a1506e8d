"""``fairchance plan``: compare ways of starting, and estimate how long a certificate takes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairchance.cli.options import Jobs, Json, check_jobs, errors, names
from fairchance.cli.output import Console, counting_bar, print_json, print_lines, print_table
from fairchance.errors import InputError
from fairchance.words import amount, percent, share
from fairchance.words.rounds import assumed, sentence

if TYPE_CHECKING:  # slow to import
    from fairchance.cli.files.histories import PastApplications
    from fairchance.ledger.config import Config, Labels
    from fairchance.simulate.plan import Plan, PlannedStart, UntilCertified
    from fairchance.simulate.populations import PastPopulation

_SHOWN = 5  # values of an outcome in a sentence
_MOST_PAST = 5_000  # applicants of a simulated history, since larger ones take long
_WAYS = {
    "pilot": "alone, with pilots",
    "pilot-history": "alone, history as evidence",
    "incumbent": "beside today's policy",
    "history": "beside it, history as evidence",
    "ramp": "beside it, ramp 0.05 for a year",
}
_BESIDE = ("incumbent", "history", "ramp")
_REJECTED = {"": "", "alike": "like accepted", "bad": "all bad"}
_NO_INCUMBENT = (
    "Beside today's policy, each batch has its decisions in a column: name it as incumbent in "
    "[columns]."
)
_SIMULATING = (
    "Simulating {} runs of {} rounds in each case, which may take minutes; fewer --repetitions or "
    "--rounds take less time."
)
_FINAL_AT_ONCE = "Outcomes that may be corrected later need a maturity (--maturity)."


def plan(
    alpha: Annotated[
        float | None, typer.Option(help="Bound on the share of bad outcomes; default 0.15.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Probability of breaking it; default 0.1.")
    ] = None,
    good: Annotated[float, typer.Option(help="Share of good applicants.")] = 0.7,
    auc: Annotated[float, typer.Option(help="AUC of the score.")] = 0.75,
    people: Annotated[int, typer.Option(help="Applicants per round.")] = 500,
    rounds: Annotated[int, typer.Option(help="Rounds to plan for.")] = 40,
    groups: Annotated[str, typer.Option(help="Groups with their shares: A=0.8,B=0.2.")] = "",
    gain: Annotated[
        float | None, typer.Option(help="Gain from a good accepted applicant; default 200.")
    ] = None,
    loss: Annotated[
        float | None, typer.Option(help="Loss from a bad accepted applicant; default 500.")
    ] = None,
    history: Annotated[
        Path | None, typer.Option(help="Simulate from your csv or parquet file instead of rates.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="With a file: the program's configuration, for its columns and words, and for the "
            "bound, gain, loss, maturity and patience that no option sets."
        ),
    ] = None,
    outcome: Annotated[
        str, typer.Option(help="With a file and no configuration: its outcome column.")
    ] = "",
    group: Annotated[
        str, typer.Option(help="With a file: its group column, to plan a certificate of each.")
    ] = "",
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
        int | None,
        typer.Option(
            help="Rounds until outcomes are no longer corrected, as the program will have it; "
            "without it they count as final at once."
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            help="Rounds after which a missing outcome counts as bad, as the program will have it; "
            "default one more than the longest delay."
        ),
    ] = None,
    repetitions: Annotated[int, typer.Option(min=2, help="Simulated runs.")] = 8,
    jobs: Jobs = -1,
    json: Json = False,
) -> None:
    """Compare ways of starting, and estimate how long a certificate takes and what it costs.

    The first two years are simulated for each way of starting. With --history, today's policy
    decides as in the file, and all is simulated twice, since no file tells how good the rejected
    are: like accepted applicants with the same features, and all bad. The way whose worse case is
    better is recommended.

    The history of a program may come with its configuration: --history past.csv --config
    program.toml.

    Example: fairchance plan --good 0.7 --auc 0.75 --people 500 --groups A=0.8,B=0.2
    """
    with errors(json):
        named = bool(outcome or accepted or good_outcome or features)
        _check_file(history, config, named=named, outcome=outcome, group=group)
        check_jobs(jobs)
        shares = _shares(groups)
        least, most = _delay(delay, rounds)
        known = None if config is None else _configured(config)
        set_by = _Settings.of(known, alpha, delta, gain, loss, maturity, patience)
        maturity, patience = set_by.maturity, set_by.patience
        patience = most + 1 if patience is None and most else patience
        from fairchance.simulate.feedback import Between  # noqa: PLC0415
        from fairchance.simulate.histories import ByPolicy, SelectedOnOutcome  # noqa: PLC0415
        from fairchance.simulate.plan import (  # noqa: PLC0415
            Plan,
            as_recorded,
            recommended,
            simulate_starts,
        )
        from fairchance.simulate.plan import plan as make_plan  # noqa: PLC0415
        from fairchance.simulate.populations import Binormal  # noqa: PLC0415
        from fairchance.simulate.streams import Drawn  # noqa: PLC0415 - slow to import

        console, past, n_batch = Console(), None, people
        if history is None:
            populations: dict[str, Any] = {"": Binormal(good, auc, shares)}
            rule = SelectedOnOutcome()
            n_past, share_accepted = 10 * people, good * rule.good + (1 - good) * rule.bad
        else:
            past = (
                read_past(history, outcome, group, accepted, good_outcome, names(features))
                if known is None
                else _read_configured(history, known, group)
            )
            populations = past_populations(past, group)
            n_past, share_accepted = min(past.accepted.size, _MOST_PAST), None
            n_kept = len(next(iter(populations.values())).X)
            n_batch = max(1, round(people * n_kept / past.accepted.size))
            print_lines([] if json else _lines(past, config, populations))
        plans = {
            rejected: Plan(
                Drawn(population, n_batch, rounds, None if past is None else n_past),
                set_by.alpha,
                set_by.delta,
                set_by.gain,
                set_by.loss,
                past=rule if past is None else ByPolicy(as_recorded),
                group_as_feature=history is None or bool(group),
                repetitions=repetitions,
                delay=Between(least, most),
                maturity=maturity or 0,
                patience=patience,
            )
            for rejected, population in populations.items()
        }
        print_lines([] if json else [_SIMULATING.format(repetitions, rounds)], to_stderr=True)
        make_starts = partial(simulate_starts, n_history=n_past, share=share_accepted)
        estimates = _simulated(plans, make_plan, "until a certificate", jobs, json)
        starts = _simulated(plans, make_starts, "ways of starting", jobs, json)
        best = recommended(starts)
        late = {
            "delay": {"least": least, "most": most},
            "maturity": maturity,
            "patience": patience,
        }
        in_plan = sum(best[0].today) / (best[0].n_rounds * people)
        earns = {} if past is None else {"file": set_by.worth(past), "plan": in_plan}
        if json:
            more = {} if past is None else {"history": past.as_dict() | {"today_earns": earns}}
            ways = [asdict(start) | {"added": start.added} for start in starts]
            found = {"recommended": best[0].way, "starts": ways, **late, **more}
            print_json({"certificate": [asdict(one) for one in estimates], **found})
            return
        print_starts(console, starts, best)
        console.print(_about_today(earns, share_accepted), style="dim", soft_wrap=True)
        if best[0].way in _BESIDE and known is not None and known.roles.incumbent is None:
            console.print(_NO_INCUMBENT, soft_wrap=True)
        print_plan(console, estimates)
        at_once = () if maturity is not None else (_FINAL_AT_ONCE,)
        print_lines([_late_message(late), sentence(assumed(maturity or 0)), *at_once])


def _simulated(
    plans: dict[str, Plan], simulate: Callable[..., list[Any]], what: str, jobs: int, quiet: bool
) -> list[Any]:
    """Simulate plans, and write into the results how each one takes the rejected."""
    found = []
    for rejected, wanted in plans.items():
        shown = f"{what}, rejected {_REJECTED[rejected]}" if rejected else what
        with counting_bar(shown, quiet) as progress:
            results = simulate(wanted, jobs=jobs, progress=progress)
        found += [replace(one, rejected=rejected) for one in results]
    return found


def _check_file(
    history: Path | None, config: Path | None, *, named: bool, outcome: str, group: str
) -> None:
    """Raise unless a file comes with its columns, named once."""
    if history is None and (named or group or config is not None):
        raise InputError("columns are of a file; name it with {option}.", option="history")
    if history is not None and not outcome and config is None:
        raise InputError("a file needs --outcome, or --config.", option="history")
    if config is not None and named:
        raise InputError("{option} names the columns; name no others.", option="config")


def read_past(
    path: Path, outcome: str, group: str, accepted: str, good: str, features: tuple[str, ...]
) -> PastApplications:
    """Read a history as ``init`` does, but without a configuration and without ids."""
    from fairchance.cli.files.histories import past_applications  # noqa: PLC0415 - slow
    from fairchance.cli.files.rows import check_there  # noqa: PLC0415
    from fairchance.cli.files.tables import SentTable, read_sent  # noqa: PLC0415
    from fairchance.extras import arrow  # noqa: PLC0415
    from fairchance.ledger.config import MISSING, Config, Roles  # noqa: PLC0415

    roles = [outcome, *filter(None, (group, accepted))]
    # The group is a feature of every plan.
    others = tuple(dict.fromkeys(name for name in features if name != group))
    if len({*roles}) < len(roles) or {*roles} & {*others} or (features and not others):
        raise InputError(
            f"the columns of a file must differ, got {', '.join(map(repr, [*roles, *features]))}; "
            f"name each one once."
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
        roles=Roles(row, outcome, accepted or None, (group,) if group else (), others),
        texts=(),
        missing_values=(),
        missing=MISSING[0],
        labels=_labels(sent.table, outcome, accepted, good),
        settings={"kind": "certified"},
        limits={},
        checks={},
    )
    with_ids = SentTable(sent.table.append_column(row, ids), sent.as_written)
    return _enough(past_applications(with_ids, config, path.name), path)


def _configured(path: Path) -> Config:
    """Read the configuration of a program."""
    from fairchance.ledger.config import read_config  # noqa: PLC0415 - slow

    return read_config(path)


def _read_configured(path: Path, config: Config, group: str) -> PastApplications:
    """Read a history as ``init`` does."""
    from fairchance.cli.files.histories import read_history  # noqa: PLC0415 - slow
    from fairchance.cli.files.rows import check_there  # noqa: PLC0415

    past = read_history(str(path), config)
    check_there(past.table, [group] if group else [], path.name)
    return _enough(past, path)


def _enough(past: PastApplications, path: Path) -> PastApplications:
    """Return a history that is not mostly refused and has good and bad outcomes; else raise."""
    from fairchance.cli.files.refusals import commonest  # noqa: PLC0415 - slow

    n_refused, n = len(past.refused), past.refused.table.num_rows
    if 2 * n_refused > n or not 0 < past.good.sum() < past.taken.sum():
        raise InputError(
            f"{n_refused:,} of {n:,} rows of {path.name} are refused, "
            f"{commonest(past.refused)}; a plan needs half of them, with good and bad outcomes."
        )
    return past


@dataclass(frozen=True)
class _Settings:
    """What options, the configuration or defaults say, in this order."""

    alpha: float
    delta: float
    gain: float
    loss: float
    maturity: int | None
    patience: int | None

    @staticmethod
    def of(config: Config | None, *options: Any) -> _Settings:
        """Take what options leave open from a configuration, if there is one."""
        from fairchance.core.utility import Accuracy  # noqa: PLC0415 - slow to import

        found: dict[str, Any] = {"alpha": 0.15, "delta": 0.1, "gain": 200.0, "loss": 500.0}
        found |= {"maturity": None, "patience": None}
        if config is not None:
            classifier = config.classifier()
            found["alpha"] = classifier.bound_
            for name in ("delta", "maturity", "patience"):
                found[name] = getattr(classifier, name, found[name])
            utility = classifier.utility or Accuracy()
            found |= {"gain": utility.gain_good, "loss": -utility.gain_bad}
        given = dict(zip(found, options, strict=True))
        return _Settings(**found | {name: one for name, one in given.items() if one is not None})

    def worth(self, past: PastApplications) -> float:
        """Return what a history earned per applicant."""
        total = self.gain * int(past.good.sum()) - self.loss * past.n_bad
        return total / past.accepted.size


def _labels(table: Any, outcome: str, accepted: str, good: str) -> Labels:
    """Return which of the two outcomes of applicants who were not rejected is good."""
    from fairchance.extras import arrow  # noqa: PLC0415
    from fairchance.ledger.config import Labels  # noqa: PLC0415
    from fairchance.people.cells import truth_values  # noqa: PLC0415 - slow

    column = table[outcome]
    if accepted:
        column = column.filter(arrow().array(truth_values(table[accepted]) != "no"))
    known = sorted({*map(Labels.canonical, column.drop_null().unique().to_pylist())})
    if len(known) != 2:
        shown = ", ".join(map(repr, known[:_SHOWN])) + ", …" * (len(known) > _SHOWN)
        raise InputError(
            f"the outcome {outcome!r} must have two values where it is known, got {len(known)} "
            f"({shown}); leave unknown outcomes empty.",
            option="outcome",
        )
    clear = known in (["0", "1"], ["false", "true"])
    best = Labels.canonical(good) if good or not clear else known[1]
    if best not in known:
        raise InputError(
            f"the outcome {outcome!r} has the values {known[0]!r} and {known[1]!r}, got {good!r} "
            f"as the good one; change {{option}}.",
            option="good_outcome",
        )
    (bad,) = {*known} - {best}
    return Labels((best,), (bad,))


def past_populations(past: PastApplications, group: str) -> dict[str, PastPopulation]:
    """Return the applicants of a history who would take the loan, by what the rejected are like.

    Text becomes columns of 0 and 1. The rejected are thinned to the take-up of the accepted.
    """
    import numpy as np  # noqa: PLC0415 - slow

    from fairchance.people.columns import TableColumns  # noqa: PLC0415
    from fairchance.simulate.populations import PastPopulation  # noqa: PLC0415

    take_up = past.taken.sum() / past.accepted.sum()
    takes = np.random.default_rng(0).random(past.accepted.size) < take_up
    kept = np.where(past.accepted, past.taken, takes)
    rows = past.table.filter(kept)
    X = rows.select(list(past.columns.names or ()))
    columns = TableColumns.of(X)
    numbers, expansion = columns.codes(X), columns.expansion(allow_missing=False)
    titles = [X.column_names[at] for at in columns.kept]
    if expansion is not None:
        owners = [titles[at] for at in expansion.owners]
        titles = [f"{name} {owners[:at].count(name)}" for at, name in enumerate(owners)]
        numbers = expansion.numbers(numbers)
    everybody = (
        numbers.astype(np.float64, copy=False),
        np.array(rows[group].to_pylist() if group else ["everybody"] * rows.num_rows, np.str_),
        tuple(titles),
        past.accepted[kept],
        past.good[past.taken],
    )
    alike = PastPopulation(*everybody)
    if past.accepted.all():
        return {"": alike}
    return {"alike": alike, "bad": PastPopulation(*everybody, rejected_are_bad=True)}


def _lines(
    past: PastApplications, config: Path | None, populations: dict[str, PastPopulation]
) -> list[str]:
    """Describe the rows and columns of a history that are used, and those that are not."""
    from fairchance.cli.files.histories import columns_message  # noqa: PLC0415 - slow
    from fairchance.cli.files.refusals import refused_counts, refused_message  # noqa: PLC0415

    lines = [*past.lines(), *refused_message(refused_counts(past.refused, None))]
    lines += columns_message(past.found, "with --features" if config is None else "in [columns]")
    if past.not_taken.any():
        lines.append("Applicants who would not take the loan are left out of the plan.")
    if "alike" in populations:
        lines.append(
            f"No file tells how good the rejected are, so the plan is made twice: as if they were "
            f"as good as accepted applicants with the same features "
            f"({percent(populations['alike'].rejected_good)} of them good), and as if all were bad."
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
    least, most = (0, -1) if parts is None else (int(parts[1]), int(parts[2] or parts[1]))
    if most < least or (least and least >= rounds):
        raise InputError(
            f"{{option}} must be rounds below {rounds}, such as 3 or 3-9, got {text!r}.",
            option="delay",
        )
    return least, most


def _shares(text: str) -> tuple[tuple[str, float], ...]:
    if not text:
        return (("everybody", 1.0),)
    try:
        pairs = [part.split("=") for part in names(text)]
        return tuple((name.strip(), float(share)) for name, share in pairs)
    except ValueError:
        raise InputError(
            f"{{option}} must look like A=0.8,B=0.2, got {text!r}.", option="groups"
        ) from None


def _late_message(late: dict[str, Any]) -> str:
    """Describe how late outcomes arrive, and which of them count as bad."""
    least, most = late["delay"]["least"], late["delay"]["most"]
    if not most:
        return "As if every outcome were known before the next round (--delay)."
    after = f"{least} to {most}" if least < most else f"{most}"
    return f"Rounds until an outcome is known: {after}; counted as bad after: {late['patience']}."


def _about_today(earns: dict[str, float], share_accepted: float | None) -> str:
    """Say what today's policy is in the plan."""
    if share_accepted is not None:
        return (
            f"Today's policy is imitated by a score cut that accepts {percent(share_accepted)}, "
            f"the share of the history."
        )
    return (
        f"Today's policy decides as in the file. It earned {amount(earns['file'])} per applicant "
        f"there, and earns {amount(earns['plan'])} in the plan."
    )


def print_starts(
    console: Console, starts: Sequence[PlannedStart], best: Sequence[PlannedStart]
) -> None:
    """Print which way of starting is recommended, and what each one earns by year."""
    from fairchance.simulate.plan import YEAR  # noqa: PLC0415 - slow to import

    console.print(_verdict(best), soft_wrap=True)
    by_rejected = len(best) > 1
    years = [f"year {at}" for at in range(1, len(best[0].earned) + 1)]
    dash = ["–"] * by_rejected
    rows = [["today's policy", *dash, *map(amount, best[0].today), "–", "–", "–"]]
    for start in starts:
        first = "–" if math.isnan(start.first) else f"{start.first:,.0f}"
        cells = [*map(amount, start.earned), amount(start.added)]
        named = [_WAYS[start.way], *[_REJECTED[start.rejected]] * by_rejected]
        rows.append([*named, *cells, f"{start.share_certified:.0%}", first])
    titles = ["start", *["rejected"] * by_rejected, *years]
    titles += ["difference", "certified", "first in round"]
    print_table(console, f"Earned, by year of {YEAR} rounds; means", titles, rows)


def _verdict(best: Sequence[PlannedStart]) -> str:
    """Say which way of starting is recommended, and what it earns beyond today's policy."""
    way = _WAYS[best[0].way].replace("beside it", "beside today's policy")
    over = f"in the first {best[0].n_rounds} rounds"
    if len(best) == 1:
        (one,) = best
        runs = f"({amount(one.least)} to {amount(one.most)} in simulated runs)"
        return (
            f"Recommended start: {way}. It earns {amount(one.added)} more than today's policy "
            f"{over} {runs}."
            if one.added > 0
            else f"No start earns more than today's policy {over}. The best one, {way}, differs "
            f"by {amount(one.added)} {runs}."
        )
    alike, bad = (f"{amount(abs(one.added))} {'less' if one.added < 0 else 'more'}" for one in best)
    added = [one.added for one in best]
    lead = "Recommended start" if max(added) > 0 else "No start is recommended; least is at risk"
    sure = "" if min(added) >= 0 else " No start earns more in both cases."
    return (
        f"{lead}: {way}. {over.capitalize()} it earns {alike} than today's policy if the rejected "
        f"applicants are as good as accepted ones with the same features, and {bad} if all of them "
        f"are bad.{sure}"
    )


def print_plan(console: Console, estimates: list[UntilCertified]) -> None:
    """Print the estimates until a certificate."""
    rows, by_rejected = [], bool(estimates[0].rejected)
    for estimate in estimates:
        figures = (estimate.rounds, estimate.accepted, estimate.explored, estimate.lost_on_bad)
        cells = [
            f"{median:,.0f} ({low:,.0f}–{high:,.0f})" if math.isfinite(median) else "–"
            for low, median, high in figures
        ]
        named = [estimate.whom, *[_REJECTED[estimate.rejected]] * by_rejected]
        rows.append([*named, f"{estimate.share_certified:.0%}", *cells])
    title = "Alone, until the first certificate, median (5 % to 95 %)"
    titles = ["for", *["rejected"] * by_rejected, "reached"]
    titles += ["rounds", "accepted", "explored", "lost on bad"]
    print_table(console, title, titles, rows)
    console.print("reached: share of simulated runs with a certificate.", style="dim")
    _print_curve(console, estimates)


def _print_curve(console: Console, estimates: list[UntilCertified]) -> None:
    """Print what the rule would earn at other bounds."""
    by_rejected = bool(estimates[0].rejected)
    rows = [
        [
            f"{point.bound:.3g}",
            *[_REJECTED[estimate.rejected]] * by_rejected,
            f"{point.share_certified:.0%}",
            f"{point.share:.1%}",
            amount(point.earned),
            share(point.estimated_fdr),
        ]
        for estimate in estimates
        for point in estimate.curve
    ]
    if not rows:
        return
    titles = ["bound", *["rejected"] * by_rejected, "certified", "best share"]
    titles += ["earned per applicant", "estimated FDR"]
    print_table(
        console,
        "Alone, at the end of the plan, by bound on mistakes; means",
        titles,
        rows,
    )
    console.print(
        "Other bounds are read off decisions made at the planned one, so they are rough.",
        style="dim",
    )
