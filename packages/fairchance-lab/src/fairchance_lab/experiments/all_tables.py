"""Every table that commands and reports show of results, built once from the head counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from fairchance.core.metrics import RATES
from fairchance.words import counted
from fairchance_lab.experiments import tables
from fairchance_lab.experiments.comparison import (
    CEILING,
    CEILING_MEANS,
    ceiling_shares,
    compared,
)
from fairchance_lab.experiments.methods import PARITY_CELLS, cell_of_fair_clf
from fairchance_lab.experiments.paired_tests import (
    FEW,
    LEVEL,
    POWER,
    holm,
    paired_p,
    repetitions_needed,
    smallest_p,
)
from fairchance_lab.experiments.report_table import (
    Column,
    Form,
    ReportTable,
    p_value,
    proportion,
    thousands,
)
from fairchance_lab.experiments.results import Results
from fairchance_lab.experiments.spec import written
from fairchance_lab.experiments.verdict import best_variant
from fairchance_lab.paper import claims
from fairchance_lab.paper.published import (
    ALPHA,
    METRICS,
    paper_row,
    published_table,
    why_different,
)

__all__ = [
    "TITLES",
    "against",
    "all_tables",
    "beside_the_paper",
    "by_setting",
    "claims_examined",
    "form_of",
    "judged",
    "overview",
    "parity_costs",
    "setting_of",
]

TITLES = {
    "revenue": "Revenue",
    "late_revenue": "Late revenue",
    "fdr": "FDR",
    "pooled_fdr": "FDR, pooled",
    "pooled_later_fdr": "FDR, pooled without round 1",
    "above_alpha": "Rounds above α",
    "acceptance_rate": "Accepted, of all people",
    "nobody_accepted": "Rounds with no one accepted",
    "selection_rate_difference": "Selection-rate difference",
    "true_positive_rate_difference": "TPR difference",
    "pooled_true_positive_rate_difference": "TPR difference, pooled",
    "explored_share": "Explored, of all people",
    "pooled_explored_fdr": "Bad among the explored",
    "pooled_exploited_fdr": "Bad among the other accepted",
    "exploit_share": "In the exploit region",
    "certified": "Certified rounds",
    "weighted": "Outcomes that thresholds rest on",
    "effective": "Effective sample size",
    "capped_share": "Weights capped",
}
_SHORT = {
    "selection_rate": "SR",
    "true_positive_rate": "TPR",
    "false_positive_rate": "FPR",
    "false_discovery_rate": "FDR",
    "false_omission_rate": "FOR",
}
_TWO, _THREE = proportion(2), proportion(3)
_METHOD = Column("method", "method")
_OVERVIEW = (
    Column("revenue", "revenue", thousands),
    Column("late_revenue", "late", thousands, error=False),
    Column("pooled_fdr", "FDR", _THREE),
    Column("pooled_later_fdr", "FDR 2…", _THREE, error=False),
    Column("above_alpha", "> α", _TWO, error=False),
    Column("nobody_accepted", "none", _TWO, error=False),
    Column("selection_rate_difference", "ΔSR", _TWO, error=False),
    Column("true_positive_rate_difference", "ΔTPR", _TWO, error=False),
    Column("acceptance_rate", "acc", _TWO, error=False),
)
# In csv and JSON only: there is no room for them in a terminal.
_MORE = ("fdr", "pooled_selection_rate_difference", "pooled_true_positive_rate_difference")
_UNIT = "Revenue is in thousands."
_OVERVIEW_NOTE = (
    "revenue: of a round; late: in the last quarter of the rounds; FDR: pooled over rounds; "
    "FDR 2…: without round 1; > α: share of rounds above α; none: share of rounds with no one "
    "accepted; ΔSR, ΔTPR: largest difference of groups' selection and true positive rates in a "
    "round; acc: share of people accepted; ±: standard error over repetitions."
)
# What methods are compared by, and its name in the table.
_COMPARED = {"revenue": "revenue", "late_revenue": "late", "pooled_fdr": "FDR", "share": "share"}
_AGAINST = (
    _METHOD,
    Column("metric", "of"),
    Column(
        "difference",
        "difference",
        {"revenue": thousands, "late": thousands, "FDR": _THREE, "share": _TWO},
        error=False,
    ),
    Column("p", "p", p_value),
    Column("p_holm", "Holm", p_value),
    Column("repetitions_needed", "needed", "{:,.0f}".format),
)
_WEIGHTS_NOTE = (
    "Of rounds whose thresholds were learned: the outcomes they rest on, how many equally weighted "
    "ones these are worth, and the share whose weight weight_cap lowers. "
)
_SPREAD = "Mean ± standard error over repetitions; sd over rounds and repetitions."


def all_tables(results: Results) -> list[ReportTable]:
    """Return all tables of results, those for every setting first."""
    at = results.main
    made = [overview(results, a) for a in range(len(results.settings))]
    if results.about["experiment"]["published"] is not None and results.alphas[at] == ALPHA:
        made.append(beside_the_paper(results, at))
    made.append(_group_differences(results, at))
    made += [_rates_between_groups(results, a) for a in range(len(results.settings))]
    best = best_variant(results, at)
    if best is not None and len(results.methods) > 1:
        table = against(results, best, at)
        chosen = f"{best} was chosen because it earned most, so its lead looks surer than it is."
        made.append(replace(table, remarks=[chosen]))
    made += parity_costs(results, at)
    exploration = (
        "explored_share",
        "pooled_explored_fdr",
        "pooled_exploited_fdr",
        "exploit_share",
    )
    made.append(_metrics(results, at, "exploration", "Exploration", exploration))
    weights = ("effective", "capped_share") if results.count("n_weighted").any() else ()
    if weights:
        made.append(
            _metrics(results, at, "weights", "Weights", ("weighted", *weights), _WEIGHTS_NOTE)
        )
    if results.count("n_next").any():
        metrics = (*METRICS[:2], "pooled_fdr", "above_alpha", *METRICS[2:])
        name, title = "f-t-on-the-next-batch", "f_t on the next batch"
        note = "Decisions of f_t alone on the next batch. "
        made.append(_metrics(results, at, name, title, metrics, note, next_batch=True))
    if results.judged and CEILING in results.methods:
        made.append(judged(results, at))
    made += claims_examined(results)
    if len(results.settings) > 1:
        made += [by_setting(results, metric) for metric in ("revenue", "pooled_fdr", *weights)]
    return made


def form_of(metric: str) -> Form:
    """Return how a metric's numbers are written."""
    if metric in ("weighted", "effective"):
        return "{:,.0f}".format
    return thousands if metric.endswith("revenue") else _THREE


def setting_of(results: Results, at: int | None) -> str:
    """Return data, α, what was varied, and repetitions, for a caption."""
    _, _, repetitions, rounds, _ = results.shape
    alpha = "" if results.varied == "α" and at is None else f"α = {results.alphas[at or 0]:g}, "
    if at is not None and results.varied not in (None, "α"):
        alpha += f"{results.settings[at]}, "
    return (
        f"Data: {results.about['data']['name']}, {alpha}{counted(repetitions, 'repetition')} "
        f"of {counted(rounds, 'round')}"
    )


def _name(name: str, results: Results, at: int) -> str:
    """Return a name for files and labels of a table that each setting has."""
    if len(results.settings) == 1:
        return name
    value = re.sub(r"[^a-z0-9.]+", "-", written(results.values[at]).lower()).strip("-.")
    return f"{name}-{_key(results.varied)}-{value}"


def _key(varied: str | None) -> str:
    return "alpha" if varied == "α" else str(varied)


def _rows(results: Results, at: int) -> list[dict[str, Any]]:
    """Return a row for each method, with what all tables say of it."""
    return [
        {
            "setting": results.settings[at],
            "alpha": results.alphas[at],
            "method": method,
            "label": results.label(method),
            "repetitions": results.shape[2],
            "failed_repetitions": len(results.failed(method, at)),
        }
        for method in results.methods
    ]


def _with_metrics(
    rows: list[dict[str, Any]], results: Results, at: int, metrics: Iterable[str], **options: bool
) -> list[dict[str, Any]]:
    """Add means, standard errors and standard deviations of metrics to a row for each method."""
    for metric in metrics:
        summary = tables.summary(results, metric, **options)
        # A yes or no has no spread of its own.
        yes_or_no = metric in ("above_alpha", "nobody_accepted")
        for i, row in enumerate(rows):
            row[metric] = float(summary.estimate.mean[at, i])
            row[f"{metric}_standard_error"] = float(summary.estimate.standard_error[at, i])
            if not yes_or_no and not metric.startswith("pooled_"):
                row[f"{metric}_sd"] = float(summary.pooled_sd[at, i])
    return rows


def overview(results: Results, at: int) -> ReportTable:
    """Return the table of all methods, with the paper's revenue and why it differs from ours."""
    metrics = [*(column.key for column in _OVERVIEW), *_MORE]
    rows, columns = _with_metrics(_rows(results, at), results, at, metrics), [_METHOD, *_OVERVIEW]
    note, reasons = _OVERVIEW_NOTE, []
    if "E2" in results.about["experiment"]["switches"]:
        unsigned = tables.summary(results, "revenue", absolute_revenue=True).estimate.mean[at]
        for row, mean in zip(rows, unsigned, strict=True):
            row["revenue_without_sign"] = float(mean)
        columns.append(Column("revenue_without_sign", "|revenue|", thousands))
    focus = results.about["experiment"].get("focus")
    if focus in results.groups:
        rates = tables.per_repetition(results, "late_true_positive_rate")
        late = tables.over_repetitions(rates[at, ..., results.groups.index(focus)], axis=1)
        for row, mean, error in zip(rows, late.mean, late.standard_error, strict=True):
            row |= {"focus_tpr": float(mean), "focus_tpr_standard_error": float(error)}
        columns.append(Column("focus_tpr", f"TPR {focus}", _TWO))
        note += f" TPR {focus}: late, of the group that the experiment is about."
    key = results.about["experiment"]["published"]
    if key and results.alphas[at] == ALPHA:
        _add_published(rows, results, at)
        if any(row["why_different"] for row in rows):
            columns.append(Column("published_revenue", "paper", thousands))
            note, reasons = f"{note} paper: its revenue, on its own data.", _reasons(rows)
    name = _name("overview", results, at)
    rows = [row for row in rows if row["method"] in results.methods_at(at)]
    setting = setting_of(results, at)
    return ReportTable(name, "All methods", setting, note, columns, rows, reasons, _UNIT)


def _add_published(rows: list[dict[str, Any]], results: Results, at: int) -> None:
    """Add the paper's numbers, and why ours differ, to the row of each method."""
    options = results.about["settings"][at]["options"]
    experiment = results.about["experiment"] | {"classifier": options}
    printed = published_table(experiment["published"])
    for row in rows:
        paper = printed.get(paper_row(row["method"]) or "")
        for metric in METRICS:
            mean, bracket = (np.nan, np.nan) if paper is None else paper[metric]
            row[f"published_{metric}"], row[f"published_{metric}_sd"] = mean, bracket
        row["why_different"] = why_different(experiment, row["method"]) if paper else ""


def _reasons(rows: list[dict[str, Any]]) -> list[str]:
    sentences = []
    for why in dict.fromkeys(row["why_different"] for row in rows if row["why_different"]):
        named = [row["method"] for row in rows if row["why_different"] == why]
        sentences.append(f"Where {' and '.join(named)} and the paper differ: {why}.")
    return sentences


def beside_the_paper(results: Results, at: int) -> ReportTable:
    """Return our numbers next to the paper's, with the rows of both."""
    unsigned = "E2" in results.about["experiment"]["switches"]
    key = results.about["experiment"]["published"]
    rows = _with_metrics(_rows(results, at), results, at, METRICS, absolute_revenue=unsigned)
    ours = {paper_row(method) for method in results.methods}
    unknown = {name: np.nan for name, value in rows[0].items() if isinstance(value, float)}
    for name in published_table(key):
        if name not in ours:
            rows.append({**rows[0], **unknown, "method": name, "failed_repetitions": 0})
    _add_published(rows, results, at)
    for row in rows[len(results.methods) :]:
        row["method"] = row["label"] = f"{row['method']} (not run)"
    columns = [_METHOD]
    for metric in METRICS:
        title = TITLES[metric] + " without its sign" * (unsigned and metric == "revenue")
        form = form_of(metric)
        columns.append(Column(metric, f"{title}, ours", form, sd=True))
        form = form if metric == "revenue" else _TWO  # as printed
        columns.append(Column(f"published_{metric}", f"{title}, paper", form, sd=True))
    note = (
        "Ours: mean ± standard error over repetitions. sd: over rounds and repetitions, which the "
        "paper's caption calls a standard error. FDR and differences are means of rounds."
    )
    setting = setting_of(results, at)
    made = ReportTable("beside-the-paper", "Beside the paper", setting, note, columns, rows)
    return replace(made, unit=_UNIT, section="paper")


def _metrics(
    results: Results,
    at: int,
    name: str,
    title: str,
    metrics: Sequence[str],
    note: str = "",
    **options: bool,
) -> ReportTable:
    rows = _with_metrics(_rows(results, at), results, at, metrics, **options)
    columns = [Column(metric, TITLES[metric], form_of(metric), sd=True) for metric in metrics]
    setting, unit = setting_of(results, at), _UNIT if "revenue" in metrics else ""
    note += _SPREAD
    return ReportTable(name, title, setting, note, [_METHOD, *columns], rows, unit=unit)


def _group_differences(results: Results, at: int) -> ReportTable:
    """Return differences per round and pooled, each rate with its noise floor."""
    rates: tuple[tables.Rate, ...] = ("selection_rate", "true_positive_rate")
    rows, columns = _rows(results, at), [_METHOD]
    for name in rates:
        single, pooled, floor = (f"{name}_difference", f"pooled_{name}_difference", f"{name}_floor")
        _with_metrics(rows, results, at, (single, pooled))
        floors = tables.mean_known(tables.noise_floor(results, name)[at], axis=(1, 2))
        for row, value in zip(rows, floors, strict=True):
            row[floor] = float(value)
        columns += [
            Column(single, TITLES[single], _THREE, sd=True),
            Column(floor, "Noise floor", _THREE),
            Column(pooled, "Pooled over rounds", _THREE),
        ]
    note = (
        "Mean over rounds of the absolute difference, the part that chance alone would cause, and "
        "the difference of counts pooled over rounds."
    )
    table, title = "differences-between-groups", "Differences between groups"
    return ReportTable(table, title, setting_of(results, at), note, columns, rows)


def _rates_between_groups(results: Results, at: int) -> ReportTable:
    """Return differences and ratios of all rates, of counts pooled over rounds."""
    names = {rate.name: _SHORT[rate.name] for rate in RATES} | {"equalized_odds": "Odds"}
    columns = [
        Column(f"pooled_{name}_{how}", f"{short} {how}", _THREE)
        for how in ("difference", "ratio")
        for name, short in names.items()
    ]
    rows = _with_metrics(_rows(results, at), results, at, [column.key for column in columns])
    note = (
        "Difference: the largest rate of a group minus the smallest; ratio: the smallest over the "
        "largest; of counts pooled over rounds. SR: accepted of all people; TPR, FPR: accepted of "
        "the good, and of the bad; FDR: bad among the accepted; FOR: good among the rejected; odds "
        "(equalised odds): the worse of TPR and FPR."
    )
    rows = [row for row in rows if row["method"] in results.methods_at(at)]
    name, title = _name("rates-between-groups", results, at), "Rates between groups"
    return ReportTable(name, title, setting_of(results, at), note, [_METHOD, *columns], rows)


def judged(results: Results, at: int) -> ReportTable:
    """Return revenue and broken bounds of all policies in the population."""
    methods = compared(results, at)
    rows = _rows(results, at)
    for row, method in zip(rows, methods, strict=True):
        for period, earned in method.earned.items():
            row[period] = earned.share
            row[f"{period}_standard_error"] = earned.standard_error
        for kind, breaks in (("certified", method.certified), ("pilot", method.uncertified)):
            row[f"{kind}_rounds"] = breaks.rounds
            row[f"{kind}_above_alpha"] = breaks.share_of_rounds
            row[f"{kind}_above_alpha_runs"] = breaks.broken_runs
            row[f"{kind}_above_alpha_of_runs"] = breaks.runs
        for group, rate in method.true_positive_rates.items():
            row[f"true_positive_rate_{group}"] = rate
        row["explored"] = method.explored
    columns = [
        _METHOD,
        *(Column(period, period, _TWO) for period in methods[0].earned),
        Column("certified_above_alpha", "cert > α", _TWO),
        Column("pilot_above_alpha", "pilot > α", _TWO),
        *(
            Column(f"true_positive_rate_{group}", f"TPR {group}", _TWO)
            for group in methods[0].true_positive_rates
        ),
        Column("explored", "explored", _TWO),
    ]
    note = (
        f"early, middle, late, whole: expected revenue of the policies in use as a share of the "
        f"ceiling's, in the first 5 rounds, in between, in the last quarter, in all. "
        f"{CEILING_MEANS} > α: share of rounds with a policy FDR above α, and in how many of the "
        f"runs with such rounds that happens; cert: rounds with a certificate; pilot: rounds "
        f"without. TPR: chance of a group's good people to be accepted, late. explored: share of "
        f"the accepted; ±: standard error over repetitions."
    )
    title = "Judged on the whole population"
    return ReportTable("judged", title, setting_of(results, at), note, columns, rows)


def against(results: Results, method: str, at: int) -> ReportTable:
    """Return how each other method differs from one method, with tests corrected for their number.

    Parameters
    ----------
    results
        Results.
    method
        The method that the others are compared with.
    at
        Index of the α among those tried.
    """
    base = results.methods.index(method)
    rows = []
    for metric, values in _compared_metrics(results, at).items():
        for i, row in enumerate(_rows(results, at)):
            if i == base:
                continue
            a, b = values[i], values[base]
            difference = np.where(np.isclose(a, b, rtol=1e-9, atol=0), 0.0, a - b)
            estimate = tables.over_repetitions(difference, axis=0)
            n = int(estimate.repetitions)
            sd = float(estimate.standard_error) * np.sqrt(n) if n >= tables.TOO_FEW else np.nan
            row.update(
                {
                    "against": method,
                    "metric": _COMPARED[metric],
                    "difference": float(estimate.mean),
                    "difference_standard_error": float(estimate.standard_error),
                    "difference_low": float(estimate.low),
                    "difference_high": float(estimate.high),
                    "test": "sign-flip" if n < FEW else "t",
                    "p": paired_p(difference),
                    "repetitions_needed": repetitions_needed(float(estimate.mean), sd),
                }
            )
            rows.append(row)
    for row, corrected in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p_holm"] = float(corrected)
    title = f"Differences from {method}"
    note = _against_note(results, rows, method)
    setting = setting_of(results, at)
    return ReportTable("paired", title, setting, note, _AGAINST, rows, unit=_UNIT)


def _compared_metrics(results: Results, at: int) -> dict[str, tables.Values]:
    """Return what methods are compared by: values with axes (method, repetition)."""
    values = {
        metric: tables.per_repetition(results, metric)[at]
        for metric in ("revenue", "late_revenue", "pooled_fdr")
    }
    if results.judged and CEILING in results.methods:
        values["share"] = ceiling_shares(results, at)
    return values


def _against_note(results: Results, rows: list[dict[str, Any]], method: str) -> str:
    names = {
        "t": "paired t test",
        "sign-flip": f"paired sign flips, smallest p {smallest_p(results.shape[2]):.2g}",
    }
    test = " or ".join(names[name] for name in dict.fromkeys(row["test"] for row in rows))
    people = results.about["data"]["rows"]
    about = f" Tests speak about other draws of the same {people:,} people." if people else ""
    return (
        f"Each method minus {method} within the same repetitions, with 95 % intervals by Student's "
        f"t. p: {test}; Holm: corrected over the {counted(len(rows), 'test')} of this table. "
        f"needed: repetitions in which a paired t test sees the difference found with probability "
        f"{POWER:g} at the level {LEVEL:g}. revenue: of a round; late: in the last quarter of the "
        f"rounds; FDR: pooled over rounds; share: expected revenue on the whole population as a "
        f"share of the ceiling's.{about}"
    )


def _differences(
    results: Results, at: int, metrics: Iterable[str], first: str, second: str
) -> dict[str, float]:
    """Return first − second within the same repetitions, with 95 % intervals."""
    known: dict[str, float] = {}
    for metric in metrics:
        difference = tables.paired(results, metric, first, second)[at]
        known[metric] = float(difference.mean)
        known[f"{metric}_low"] = float(difference.low)
        known[f"{metric}_high"] = float(difference.high)
    return known


_CUTS = {"shared": "one cut", "per-group": "cut per group"}
_PLACES = {"cut": "at the cut", "fit": "in the fit"}
_WITHOUT_PARITY = {cell.cuts: name for name, cell in PARITY_CELLS.items() if cell.parity == "none"}
_PARITY = (
    Column("comparison", "comparison"),
    Column("revenue", "revenue", thousands),
    Column("pooled_fdr", "FDR", _THREE),
    Column("pooled_selection_rate_difference", "ΔSR", _THREE),
)
_PARITY_NOTE = (
    "With parity minus without, at the same number of cuts and within the same repetitions, with "
    "95 % intervals; last row: what a cut for each group changes by itself. FDR and ΔSR "
    "(difference of selection rates) are pooled over rounds."
)


def parity_costs(results: Results, at: int) -> list[ReportTable]:
    """Return what parity costs at equal flexibility, if methods that show it were run.

    Parity at the cut is usually offered along with a cut for each group, which earns by itself. So
    parity is compared with no parity at the same number of cuts, and the cuts for themselves.
    """
    pairs = {
        f"{_CUTS[cell.cuts]}: parity {_PLACES[cell.parity]}": (name, _WITHOUT_PARITY[cell.cuts])
        for name, cell in PARITY_CELLS.items()
        if cell.parity != "none"
    }
    pairs["no parity: cut per group"] = _WITHOUT_PARITY["per-group"], _WITHOUT_PARITY["shared"]
    made = []
    metrics = [column.key for column in _PARITY[1:]]
    for name, family, named in (
        ("parity-costs-algorithm-1", "Algorithm 1", str),
        ("parity-costs-fair-clf", "FAIR-CLF", cell_of_fair_clf),
    ):
        rows = [
            {"comparison": words, "first": named(first), "second": named(second)}
            | _differences(results, at, metrics, named(first), named(second))
            for words, (first, second) in pairs.items()
            if {named(first), named(second)} <= set(results.methods)
        ]
        if rows:
            title, setting = f"What parity costs: {family}", setting_of(results, at)
            table = ReportTable(name, title, setting, _PARITY_NOTE, _PARITY, rows, unit=_UNIT)
            made.append(table)
    return made


_CLAIMS = (
    Column("claim", "claim"),
    Column("measured", "measured"),
    Column("effect", "effect", claims.short),
    Column("p", "p", p_value),
    Column("adjusted", "Holm", p_value),
    Column("verdict", "verdict"),
)


def claims_examined(results: Results) -> list[ReportTable]:
    """Return the paper's claims as tests over repetitions, for the paper's experiments."""
    if results.about["experiment"]["published"] is None:
        return []
    rows = [asdict(row) | {"verdict": row.verdict} for row in claims.examine(results)]
    name, title = "claims-examined", "Claims examined"
    table = ReportTable(name, title, setting_of(results, results.main), claims.NOTE, _CLAIMS, rows)
    return [replace(table, section="paper")] if rows else []


def by_setting(results: Results, metric: str) -> ReportTable:
    """Return a metric of every method for each setting."""
    rows: list[dict[str, Any]] = [
        {"method": method, "label": results.label(method)} for method in results.methods
    ]
    columns = [_METHOD]
    for at, setting in enumerate(results.settings):
        key = f"{metric}_{_key(results.varied)}_{written(results.values[at])}"
        values = _with_metrics([{} for _ in rows], results, at, [metric])
        for row, known in zip(rows, values, strict=True):
            row |= {key + name[len(metric) :]: value for name, value in known.items()}
        columns.append(Column(key, setting, form_of(metric), sd=True))
    title = f"{TITLES[metric]} for each {results.varied}"
    name = f"{metric.replace('_', '-')}-by-{_key(results.varied).replace('_', '-')}"
    unit = _UNIT if metric == "revenue" else ""
    made = ReportTable(name, title, setting_of(results, None), _SPREAD, columns, rows)
    return replace(made, unit=unit, section="varied")
