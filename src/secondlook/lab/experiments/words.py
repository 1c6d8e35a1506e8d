"""What results show, in sentences: every word is chosen by the numbers, none is written before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from secondlook.lab.experiments import tables
from secondlook.lab.experiments.methods import VARIANTS
from secondlook.lab.experiments.published import ALPHA, paper_data
from secondlook.lab.experiments.released import SWITCHES
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.tables import Estimate

__all__ = [
    "best_variant",
    "findings",
    "label",
    "listed",
    "quoted",
    "rate",
    "remarks",
    "thousands",
    "what_was_run",
]

Format = Callable[[Any], str]
_BEATEN = (
    " It is no ceiling for all rules: one logistic model fitted to everybody ranks people near the "
    "threshold less well than one fitted where decisions are made."
)
# The nearest to full knowledge first.
_OPTIMA = ("opt-hindsight", "opt-oracle", "opt-offline")


def thousands(value: Any) -> str:
    """Write an amount in thousands, with one decimal.

    Examples
    --------
    >>> thousands(-12.345), thousands(-0.01), thousands(float("nan"))
    ('−12.3', '0.0', '–')
    """
    return _number(value, 1)


def rate(value: Any) -> str:
    """Write a rate, with three decimals.

    Examples
    --------
    >>> rate(0.15)
    '0.150'
    """
    return _number(value, 3)


def _number(value: Any, decimals: int) -> str:
    if not np.isfinite(value):
        return "–"
    text = f"{float(value):,.{decimals}f}"
    if not text.strip("-0.,"):
        text = text.lstrip("-")
    return text.replace("-", "−")


def label(results: Results, method: str) -> str:
    """Return a method's name for people."""
    return str(results.about.get("labels", {}).get(method, method))


def quoted(results: Results, method: str) -> str:
    """Return a method's name for people, in quotation marks."""
    return f"“{label(results, method)}”"


def listed(items: Sequence[str]) -> str:
    """Return items with commas and an "and" between.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def what_was_run(results: Results) -> str:
    """Say how many methods, repetitions, rounds and people there were, and on which data."""
    n_alphas, n_methods, repetitions, rounds, n_groups = results.shape
    people = results.count("n_people").max(axis=(0, 1)).sum(axis=-1)  # 0 where a method failed
    low, high = int(people.min()), int(people.max())
    size = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    bounds = listed([f"{alpha:g}" for alpha in results.alphas])
    bound = f"α = {bounds}" if n_alphas == 1 else f"each of the bounds α = {bounds}"
    source = results.about["data"]["source"]
    return (
        f"{_many(n_methods, 'method')} decided {_many(rounds, 'round')} of {size} people each, in "
        f"{_many(repetitions, 'repetition')}, for {bound}, with {_many(n_groups, 'group')} "
        f"({listed(results.groups)}). Data: {source}"
    )


def _many(n: int, word: str) -> str:
    return f"{n} {word}{'s' * (n != 1)}"


def remarks(results: Results) -> list[str]:
    """Say what a reader has to know before looking at numbers."""
    experiment = results.about["experiment"]
    said = []
    table, data = experiment["published"], results.about["data"]["name"]
    if table is not None and data != paper_data(table):
        said.append(
            f"The paper used other data: its table was made from “{paper_data(table)}”, this run "
            f"from “{data}”. Compare directions, not values."
        )
    if table is not None and ALPHA not in results.alphas:
        said.append(f"The paper's table is for α = {ALPHA}, which was not among the bounds run.")
    said.append(_world(experiment))
    if table is not None or experiment["switches"]:
        said.append(_switches(experiment["switches"]))
    if "E2" in experiment["switches"]:
        said.append(
            "Where a table says “without its sign”, revenue is the mean of each round's absolute "
            "value, as the released code has it. All sentences, figures and other tables keep the "
            "sign."
        )
    if [rule.get("rule") for rule in experiment["world"]["past"]] == ["outcome"]:
        said.append(_nothing_to_explore(results))
    return said


def _world(experiment: dict[str, Any]) -> str:
    """Say how the past decided, how outcomes come back and what decisions are worth."""
    world, goal = experiment["world"], experiment["goal"]
    past = " and ".join(_with_options(rule, "rule") for rule in world["past"])
    said = f"The past accepted by: {past}."
    if world.get("feedback"):
        told = {**world["feedback"]}
        delay = told.pop("delay", None)
        parts = [f"delay {_with_options(delay, 'kind')}"] if delay else []
        parts += [f"{name.replace('_', ' ')} {value}" for name, value in sorted(told.items())]
        said += f" Outcomes come back with {', '.join(parts)}."
    if world.get("drift"):
        said += f" Drift a round: {_with_options(world['drift'], '')}."
    return (
        f"{said} A good accepted person brings {goal['gain']:g}, a bad one costs {goal['loss']:g}."
    )


def _with_options(options: dict[str, Any], name: str) -> str:
    rest = ", ".join(f"{key} {value}" for key, value in sorted(options.items()) if key != name)
    named = str(options.get(name, ""))
    return f"{named} ({rest})" if named and rest else named or rest


def _nothing_to_explore(results: Results) -> str:
    best = best_variant(results, tables.main_alpha(results))
    text = (
        "In this world the past chose by the outcome itself and by nothing else, so the history "
        "covers people of every kind and exploration can hardly help"
    )
    if best is None or "no-exploration" not in results.methods:
        return f"{text}."
    same = like_for_like(results, best)
    gained = tables.paired(results, "revenue", same, "no-exploration")[tables.main_alpha(results)]
    against = "; more was earned with it all the same (below)" if gained.low > 0 else ""
    return f"{text}{against}."


def _switches(names: Sequence[str]) -> str:
    if not names:
        return "No deviation of the paper's released code was switched on."
    known = [f"{name} ({SWITCHES[name]})" if name in SWITCHES else name for name in names]
    whom = " (those of the algorithm, B and C, for its variants and ablations only)"
    return f"Switched on, as in the paper's released code{whom}: {'; '.join(known)}."


def findings(results: Results) -> list[str]:
    """Say what the numbers show, at the experiment's own α and over all that were tried."""
    at = tables.main_alpha(results)
    said = [_mistakes(results, at), _rounds_above(results, at)]
    best = best_variant(results, at)
    if best is not None:
        said.append(_best(results, at, best))
        said += [
            _against(results, at, like_for_like(results, best), other)
            for other in ("no-exploration", "alpha-at-once")
            if other in results.methods
        ]
        named = results.about["experiment"].get("focus")
        if named in results.groups and "no-exploration" in results.methods:
            said.append(_reached(results, at, like_for_like(results, best), str(named)))
        optimum = next((name for name in _OPTIMA if name in results.methods), None)
        if optimum is not None:
            said.append(_distance(results, at, best, optimum))
    if len(results.groups) > 1:
        said += [_gap(results, at, "selection_rate"), _gap(results, at, "true_positive_rate")]
    if len(results.alphas) > 1:
        said.append(_sweep(results))
    return said


def best_variant(results: Results, at: int) -> str | None:
    """Return the variant of Algorithm 1 with the most revenue, None where none ran."""
    means = tables.summary(results, "revenue").estimate.mean[at]
    earned = {name: float(means[results.methods.index(name)]) for name in _ran(results)}
    known = {name: mean for name, mean in earned.items() if np.isfinite(mean)}
    return max(known, key=known.__getitem__, default=None)


def _ran(results: Results) -> list[str]:
    return [name for name in VARIANTS if name in results.methods]


def like_for_like(results: Results, best: str) -> str:
    """Return the variant that differs from the ablations in exploration and schedule only."""
    return "plain" if "plain" in results.methods else best


def _by_side(results: Results, found: Estimate, bound: float) -> dict[str, list[int]]:
    """Sort methods by whether their interval lies above, below or around a bound."""
    sides: dict[str, list[int]] = {"above": [], "around": [], "below": [], "unknown": []}
    for i in range(len(results.methods)):
        if not np.isfinite(found.half_width[i]):
            sides["unknown"].append(i)
        elif found.low[i] > bound:
            sides["above"].append(i)
        else:
            sides["below" if found.high[i] < bound else "around"].append(i)
    return sides


def _mistakes(results: Results, at: int) -> str:
    bound = results.alphas[at]
    found = tables.summary(results, "pooled_fdr").estimate[at]
    names = [quoted(results, name) for name in results.methods]
    words = {
        "above": f"above α = {rate(bound)} for",
        "around": f"not measurably different from α = {rate(bound)} for",
        "below": f"below α = {rate(bound)} for",
        "unknown": "known without an interval for",
    }
    parts = [
        f"{words[side]} " + listed([f"{names[i]} ({rate(found.mean[i])})" for i in which])
        for side, which in _by_side(results, found, bound).items()
        if which
    ]
    return f"The FDR pooled over all rounds is {'; '.join(parts)}."


def _rounds_above(results: Results, at: int) -> str:
    shares = tables.summary(results, "above_alpha").estimate.mean[at]
    least, most = int(np.nanargmin(shares)), int(np.nanargmax(shares))
    names = [quoted(results, results.methods[i]) for i in (least, most)]
    if shares[least] == shares[most]:
        text = f"Every method was above α in {rate(shares[most])} of its rounds"
    else:
        text = (
            f"The share of single rounds above α runs from {rate(shares[least])} ({names[0]}) to "
            f"{rate(shares[most])} ({names[1]})"
        )
    empty = np.nansum(tables.per_round(results, "nobody_accepted")[at])
    nobody = f" In {_many(int(empty), 'round')} nobody was accepted." if empty else ""
    return f"{text}; a method exactly at α would be above it in about half.{nobody}"


def _best(results: Results, at: int, best: str) -> str:
    i = results.methods.index(best)
    found = tables.summary(results, "revenue").estimate[at, i]
    late = tables.summary(results, "late_revenue").estimate[at, i]
    ran = len(_ran(results))
    chosen = (
        f"Of the {ran} variants of Algorithm 1, {quoted(results, best)} earned most"
        if ran > 1
        else f"{quoted(results, best)} earned"
    )
    after = "; it was picked after the fact, which flatters it a little" if ran > 1 else ""
    return (
        f"{chosen}: {thousands(found.mean)} thousand per round (standard error "
        f"{thousands(found.standard_error)}), {thousands(late.mean)} in the last "
        f"{tables.late_rounds(results)} rounds{after}."
    )


def _against(results: Results, at: int, first: str, second: str) -> str:
    difference = tables.paired(results, "revenue", first, second)[at]
    fdr = tables.summary(results, "pooled_fdr").estimate.mean[at]
    a, b = (rate(fdr[results.methods.index(name)]) for name in (first, second))
    return (
        f"{quoted(results, first)} against {quoted(results, second)}: "
        f"{_compared(difference)}. Pooled FDR was {a} against {b}."
    )


def _compared(difference: Estimate) -> str:
    """Say which side a paired difference of revenue is on."""
    low, high = difference.low, difference.high
    interval = f"(95 % interval {thousands(low)} to {thousands(high)})"
    size = thousands(abs(difference.mean))
    if not np.isfinite(difference.half_width):
        return f"a difference of {thousands(difference.mean)} thousand per round, with no interval"
    if low <= 0 <= high:
        return (
            f"no measurable difference, {thousands(difference.mean)} thousand per round {interval}"
        )
    return f"{size} thousand {'more' if low > 0 else 'less'} per round {interval}"


def _reached(results: Results, at: int, best: str, group: str) -> str:
    """Say what exploration did for the people whom the past shut out."""
    g = results.groups.index(group)
    values = tables.per_repetition(results, "late_true_positive_rate")[at, ..., g]
    mine, without = (values[results.methods.index(name)] for name in (best, "no-exploration"))
    difference = tables.over_repetitions(mine - without, axis=0)
    interval = f"(95 % interval {rate(difference.low)} to {rate(difference.high)})"
    if difference.low <= 0 <= difference.high or not np.isfinite(difference.half_width):
        verdict = f"no measurable difference {interval}"
    else:
        verdict = f"{'higher' if difference.low > 0 else 'lower'} with it {interval}"
    return (
        f"Of the good people whom the past shut out (“{group}”), {quoted(results, best)} accepts "
        f"{rate(np.nanmean(mine))} in the last {tables.late_rounds(results)} rounds, and "
        f"{rate(np.nanmean(without))} are accepted with exploration off: {verdict}."
    )


def _distance(results: Results, at: int, best: str, reference: str) -> str:
    difference = tables.paired(results, "late_revenue", best, reference)[at]
    late = tables.summary(results, "late_revenue").estimate.mean[at]
    mine, optimum = (float(late[results.methods.index(n)]) for n in (best, reference))
    share = f", {100 * mine / optimum:.0f}\u00a0% of its revenue" if optimum > 0 else ""
    return (
        f"In the last {tables.late_rounds(results)} rounds, {quoted(results, best)} against the "
        f"reference {quoted(results, reference)}: {_compared(difference)}{share}."
        f"{_BEATEN if difference.low > 0 else ''}"
    )


def _gap(results: Results, at: int, which: tables.Rate) -> str:
    name = {"selection_rate": "selection rates", "true_positive_rate": "true positive rates"}[which]
    pooled = tables.summary(results, f"pooled_{which}_difference").estimate.mean[at]
    rounds = tables.summary(results, f"{which}_difference").estimate.mean[at]
    floor = tables.noise_floor(results, which)[at]
    floors = np.array([np.nanmean(one) if np.isfinite(one).any() else np.nan for one in floor])
    if not np.isfinite(pooled).any():
        return f"Differences of {name} between groups are not known."
    least, most = int(np.nanargmin(pooled)), int(np.nanargmax(pooled))
    near = int((rounds < 1.5 * floors).sum())
    if len(results.methods) == 1:
        return (
            f"Pooled over rounds, {name} of groups differ by {rate(pooled[0])}. Chance alone would "
            f"make {_range(floors)} of the mean difference per round, which was {rate(rounds[0])}."
        )
    return (
        f"Pooled over rounds, {name} of groups differ least for "
        f"{quoted(results, results.methods[least])} ({rate(pooled[least])}) and most for "
        f"{quoted(results, results.methods[most])} ({rate(pooled[most])}). Chance alone would "
        f"make {_range(floors)} of the mean difference per round; for {near} of "
        f"{_many(len(results.methods), 'method')} that is more than two thirds of what was "
        f"measured."
    )


def _range(values: tables.Values) -> str:
    low, high = rate(np.nanmin(values)), rate(np.nanmax(values))
    return low if low == high else f"{low} to {high}"


def _sweep(results: Results) -> str:
    found = tables.summary(results, "pooled_fdr").estimate
    over = [
        sum(float(found.low[a, i]) > alpha for a, alpha in enumerate(results.alphas))
        for i in range(len(results.methods))
    ]
    parts = [
        f"at {k or 'none'} for {quoted(results, method)}"
        for method, k in zip(results.methods, over, strict=True)
    ]
    return (
        f"Of the {len(results.alphas)} bounds α tried, the pooled FDR was measurably above α "
        f"{', '.join(parts)}."
    )
