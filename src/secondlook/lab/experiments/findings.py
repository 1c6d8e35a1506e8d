"""Sentences about results, chosen by the numbers: what was run, remarks, findings, failures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from secondlook.lab.experiments import tables
from secondlook.lab.experiments.certificates import records_of, summarise_certificates
from secondlook.lab.experiments.comparison import CEILING, LOGISTIC
from secondlook.lab.experiments.methods import (
    ASSUMPTIONS,
    REFERENCES,
    VARIANTS,
    find_variant,
    options_of,
    taken_options,
)
from secondlook.lab.experiments.published import (
    ALPHA,
    PAPER_REPETITIONS,
    paper_data,
    published_table,
)
from secondlook.lab.experiments.released import SWITCHES, count_deviations
from secondlook.lab.experiments.results import Counts, Results
from secondlook.lab.experiments.spec import Goal, written
from secondlook.lab.experiments.tables import Estimate
from secondlook.ledger.config_classifiers import PAPER_TEXT

__all__ = [
    "assumptions",
    "at_main",
    "best_variant",
    "certificate_findings",
    "failed_in",
    "failures",
    "findings",
    "label",
    "nothing_found",
    "rate",
    "remarks",
    "thousands",
    "what_was_run",
]

Format = Callable[[Any], str]
_REFERENCE_BEATEN = " A reference is not an upper bound for all rules."
_SHOWN_SEEDS = 5
_NORMAL = 1.96  # half of a 95 % interval, in standard errors


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
    """Return a method's name for readers."""
    return str(results.about.get("labels", {}).get(method, method))


def _quoted(results: Results, method: str) -> str:
    """Return a method's name for readers, in quotation marks."""
    return f"“{label(results, method)}”"


def _listed(items: Sequence[str]) -> str:
    """Return items separated by commas and "and".

    Examples
    --------
    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def what_was_run(results: Results) -> str:
    """Describe the run: methods, repetitions, rounds, people and data."""
    n_settings, n_methods, repetitions, rounds, n_groups = results.shape
    people = results.count("n_people").max(axis=(0, 1)).sum(axis=-1)  # 0 if a method failed
    low, high = int(people.min()), int(people.max())
    size = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    bound = f"α = {results.alphas[results.main]:g}"
    if n_settings > 1:
        values = _listed([setting.partition(" = ")[2] for setting in results.settings])
        tried = f"each of {results.varied} = {values}"
        bound = tried if results.varied == "α" else f"{bound} and {tried}"
    source = results.about["data"]["source"]
    return (
        f"{_many(n_methods, 'method')} decided {_many(rounds, 'round')} of {size} people each, in "
        f"{_many(repetitions, 'repetition')}, for {bound}, with {_many(n_groups, 'group')} "
        f"({_listed(results.groups)}). Data: {source}"
    )


def _many(n: int, word: str) -> str:
    return f"{n} {word}{'s' * (n != 1)}"


def remarks(results: Results) -> list[str]:
    """Return what a reader must know before looking at the numbers."""
    experiment = results.about["experiment"]
    remarks = []
    table, data = experiment["published"], results.about["data"]["name"]
    if table is not None and data != paper_data(table):
        remarks.append(
            f"The paper used other data: its table is from “{paper_data(table)}”, this run from "
            f"“{data}”. Compare directions, not values."
        )
    if table is not None and ALPHA not in results.alphas:
        remarks.append(f"The paper's table is for α = {ALPHA}, which this run did not try.")
    remarks.append(_describe_world(experiment))
    remarks += _describe_options(results)
    if table is not None or experiment["switches"]:
        remarks.append(_describe_switches(experiment["switches"]))
    if "E2" in experiment["switches"]:
        remarks.append(
            "In tables that say “without its sign”, revenue is the mean of each round's absolute "
            "value, as in the released code. All sentences, figures and other tables keep the sign."
        )
    if "A9" in experiment["switches"]:
        remarks.append(
            "All repetitions share one resample of the data (A9), so intervals and tests over "
            "repetitions are too sure; the paper's claims are not examined."
        )
    if [rule.get("rule") for rule in experiment["world"]["past"]] == ["outcome"]:
        remarks.append(_nothing_to_explore(results))
    return remarks


def _describe_world(experiment: dict[str, Any]) -> str:
    """Describe the past, the feedback and the value of decisions."""
    world, goal = experiment["world"], experiment["goal"]
    past = " and ".join(_with_options(rule, "rule") for rule in world["past"])
    text = f"The past accepted by: {past}."
    if "A1" in experiment["switches"]:
        text += " Outcomes of the people whom it rejected are known all the same (A1)."
    if world.get("feedback"):
        options = {**world["feedback"]}
        delay = options.pop("delay", None)
        parts = [f"delay {_with_options(delay, 'kind')}"] if delay else []
        parts += [f"{name.replace('_', ' ')} {value}" for name, value in sorted(options.items())]
        text += f" Outcomes come back with {', '.join(parts)}."
    if world.get("drift"):
        text += f" Drift per round: {_with_options(world['drift'], '')}."
    return (
        f"{text} Accepting a good person gains {goal['gain']:g}, accepting a bad person loses "
        f"{goal['loss']:g}."
    )


def _describe_options(results: Results) -> list[str]:
    """Describe the options of Algorithm 1's methods, variants, and methods that ran once."""
    experiment = results.about["experiment"]
    given, goal = dict(experiment["classifier"]), Goal(**experiment["goal"])
    if results.varied == "paper_text":
        given["paper_text"] = True
    variants = experiment["variants"]
    by_method = {name: taken_options(name, goal, given, variants) for name in results.methods}
    taken = {name: options for name, options in by_method.items() if options}
    on = given.pop("paper_text", False)
    parts = []
    for key, value in ({**PAPER_TEXT, **given} if on else given).items():
        names = [name for name, options in taken.items() if options.get(key) == value]
        only = "" if len(names) == len(taken) else f" ({_listed(names) if names else 'no method'})"
        parts.append(f"{key} = {written(value)}{only}")
    sentences = []
    if on:
        text = "paper_text is on: the paper's own choices where our defaults differ"
        if results.varied == "paper_text":
            text = "paper_text = true stands for the paper's own choices where our defaults differ"
        sentences.append(f"{text}. Options of Algorithm 1's methods: {'; '.join(parts)}.")
    elif parts:
        sentences.append(f"Options of Algorithm 1's methods: {'; '.join(parts)}.")
    for name, options in variants.items():
        own, base = (find_variant(n, variants) for n in (name, options["method"]))
        if name not in results.methods or own is None or base is None:
            continue
        known = options_of(base, goal, {})
        different = [
            f"{key} = {written(value)}"
            for key, value in options_of(own, goal, {}).items()
            if known.get(key) != value
        ]
        text = f"“{name}” is {options['method']} with {_listed(different or ['no changes'])}"
        sentences.append(f"{text}{' (paper_text)' if options.get('paper_text') else ''}.")
    once = results.about["once"]
    if once:
        unchanged = _listed([_quoted(results, name) for name in once])
        sentences.append(
            f"{results.varied} does not change {unchanged}, which ran once, with "
            f"{results.settings[results.main]}."
        )
    return sentences


def _with_options(options: dict[str, Any], name: str) -> str:
    rest = ", ".join(f"{key} {value}" for key, value in sorted(options.items()) if key != name)
    named = str(options.get(name, ""))
    return f"{named} ({rest})" if named and rest else named or rest


def _nothing_to_explore(results: Results) -> str:
    best = best_variant(results, results.main)
    text = (
        "In this world the past chose by the outcome alone, so the history covers people of every "
        "kind and exploration can hardly help"
    )
    if best is None or "no-exploration" not in results.methods:
        return f"{text}."
    same = _comparable_variant(results, best)
    gained = tables.paired(results, "revenue", same, "no-exploration")[results.main]
    against = "; it did increase revenue here (see below)" if gained.side() == "above" else ""
    return f"{text}{against}."


def _describe_switches(names: Sequence[str]) -> str:
    if not names:
        return "No deviation of the paper's released code was switched on."
    known = [f"{name} ({SWITCHES[name]})" if name in SWITCHES else name for name in names]
    scope = " (B and C for variants and ablations of the algorithm only)"
    return (
        f"Switched on, as in the paper's released code{scope}: {'; '.join(known)}. "
        f"{count_deviations()}"
    )


def findings(results: Results) -> list[str]:
    """Return what the numbers show, at the main setting and over all that were tried."""
    at = results.main
    sentences = [_mistakes(results, at), _rounds_above(results, at)]
    best = best_variant(results, at)
    if best is not None:
        sentences += _past_policy(results, at, _comparable_variant(results, best))
        sentences.append(_best(results, at, best))
        sentences += [
            _against(results, at, _comparable_variant(results, best), other)
            for other in ("no-exploration", "alpha-at-once")
            if other in results.methods
        ]
        named = results.about["experiment"].get("focus")
        if named in results.groups and "no-exploration" in results.methods:
            sentences.append(_reached(results, at, _comparable_variant(results, best), str(named)))
        known = [name for name in (CEILING, LOGISTIC) if name in results.methods]
        known = known or [name for name in ("opt-offline",) if name in results.methods]
        sentences += [_distance(results, at, best, reference) for reference in known]
        sentences += _levels(results, at)
    if len(results.groups) > 1:
        sentences += [_gap(results, at, "selection_rate"), _gap(results, at, "true_positive_rate")]
    sentences = [at_main(results) + sentence for sentence in sentences]
    if len(results.settings) > 1:
        sentences += _sweep(results) if results.varied == "α" else _changed(results)
    return sentences


def at_main(results: Results) -> str:
    """Return the beginning of a sentence about the main setting, if there are several."""
    return f"At {results.settings[results.main]}: " if len(results.settings) > 1 else ""


def best_variant(results: Results, at: int) -> str | None:
    """Return the variant of Algorithm 1 with the highest revenue, or None."""
    means = tables.summary(results, "revenue").estimate.mean[at]
    earned = {name: float(means[results.methods.index(name)]) for name in _ran(results)}
    known = {name: mean for name, mean in earned.items() if np.isfinite(mean)}
    return max(known, key=known.__getitem__, default=None)


def _ran(results: Results) -> list[str]:
    return [name for name in VARIANTS if name in results.methods]


def _comparable_variant(results: Results, best: str) -> str:
    """Return the variant that differs from the ablations only in exploration and schedule."""
    return "plain" if "plain" in results.methods else best


def _mistakes(results: Results, at: int) -> str:
    bound = results.alphas[at]
    estimate = tables.summary(results, "pooled_fdr").estimate[at]
    texts = {
        "above": f"above α = {rate(bound)} for",
        "around": f"not measurably different from α = {rate(bound)} for",
        "below": f"below α = {rate(bound)} for",
        "few": f"known from too few repetitions to tell it from α = {rate(bound)} for",
        "unknown": "known without an interval for",
    }
    sides: dict[str, list[str]] = {side: [] for side in texts}
    for i, name in enumerate(results.methods):
        known = estimate[i]
        interval = "" if np.isnan(known.half_width) else f"; {_ends(known, rate)}"
        sides[known.side(bound)].append(f"{_quoted(results, name)} ({rate(known.mean)}{interval})")
    parts = [f"{texts[side]} {_listed(which)}" for side, which in sides.items() if which]
    return f"The FDR pooled over all rounds (with 95 % intervals) is {'; '.join(parts)}."


def _ends(estimate: Estimate, form: Format) -> str:
    return f"{form(estimate.low)} to {form(estimate.high)}"


def _rounds_above(results: Results, at: int) -> str:
    shares = tables.summary(results, "above_alpha").estimate.mean[at]
    least, most = int(np.nanargmin(shares)), int(np.nanargmax(shares))
    names = [_quoted(results, results.methods[i]) for i in (least, most)]
    if shares[least] == shares[most]:
        text = f"Every method was above α in {rate(shares[most])} of its rounds"
    else:
        text = (
            f"The share of rounds above α ranges from {rate(shares[least])} ({names[0]}) to "
            f"{rate(shares[most])} ({names[1]})"
        )
    empty = tables.per_round(results, "nobody_accepted")[at]
    n_empty, n = int(np.nansum(empty)), int(np.isfinite(empty).sum())
    no_one = f" In {n_empty:,} of {_many(n, 'round')} no one was accepted." if n_empty else ""
    return f"{text}; a method exactly at α would be above it in about half of its rounds.{no_one}"


def _past_policy(results: Results, at: int, follower: str) -> list[str]:
    """Say whether the past policy kept α: by the history, and by round 1 of a variant."""
    i = results.methods.index(follower)
    past, first = (
        [results.count(f"n_{name}")[at, i, :, 0].sum(axis=-1) for name in names]
        for names in (
            ("past", "past_accepted", "past_accepted_good"),
            ("people", "accepted", "accepted_good"),
        )
    )
    if not past[1].any() or not first[1].any():
        return []
    return [
        f"The theory assumes that the past policy f_0 keeps α = {rate(results.alphas[at])}. The "
        f"past accepted {_accepted(*past)} in the history; round 1 of {_quoted(results, follower)} "
        f"accepted {_accepted(*first)} (95 % intervals over repetitions). The history may be "
        f"selected by its outcomes, so round 1 is the honest estimate if it follows f_0."
    ]


def _accepted(people: Counts, accepted: Counts, good: Counts) -> str:
    """Say what share of the people was accepted, and how many of these were bad."""
    fdr = tables.over_repetitions(tables.share(accepted - good, accepted), axis=0)
    return (
        f"{rate(accepted.sum() / people.sum())} with an FDR of {rate(fdr.mean)} ({rate(fdr.low)} "
        f"to {rate(fdr.high)})"
    )


def _best(results: Results, at: int, best: str) -> str:
    i = results.methods.index(best)
    estimate = tables.summary(results, "revenue").estimate[at, i]
    late = tables.summary(results, "late_revenue").estimate[at, i]
    ran = len(_ran(results))
    chosen = (
        f"Of the {ran} variants of the paper that were run, {_quoted(results, best)} earned most"
        if ran > 1
        else f"{_quoted(results, best)} earned"
    )
    after = "; choosing the best afterwards flatters it slightly" if ran > 1 else ""
    return (
        f"{chosen}: {thousands(estimate.mean)} thousand per round (standard error "
        f"{thousands(estimate.standard_error)}), {thousands(late.mean)} in the last "
        f"{tables.late_rounds(results)} rounds{after}."
    )


def _against(results: Results, at: int, first: str, second: str) -> str:
    difference = tables.paired(results, "revenue", first, second)[at]
    fdr = tables.summary(results, "pooled_fdr").estimate.mean[at]
    a, b = (rate(fdr[results.methods.index(name)]) for name in (first, second))
    return (
        f"{_quoted(results, first)} against {_quoted(results, second)}: "
        f"{_compared(difference)}. Pooled FDR was {a} against {b}."
    )


def _compared(difference: Estimate) -> str:
    """Describe a paired difference of revenue."""
    found = f"{thousands(difference.mean)} thousand per round"
    interval = f"(95 % interval {_ends(difference, thousands)})"
    side = difference.side()
    if side == "unknown":
        return f"a difference of {found}, with no interval"
    if side == "few":
        return f"a difference of {found} {interval}, from too few repetitions to tell"
    if side == "around":
        return f"no measurable difference, {found} {interval}"
    size, more = thousands(abs(difference.mean)), "more" if side == "above" else "less"
    return f"{size} thousand {more} per round {interval}"


def _reached(results: Results, at: int, best: str, group: str) -> str:
    """Describe what exploration did for the group that the past excluded."""
    g = results.groups.index(group)
    values = tables.per_repetition(results, "late_true_positive_rate")[at, ..., g]
    explored, without = (values[results.methods.index(name)] for name in (best, "no-exploration"))
    difference = tables.over_repetitions(explored - without, axis=0)
    verdict = {
        "above": "higher with exploration",
        "around": "no measurable difference",
        "below": "lower with exploration",
    }.get(difference.side(), "too few repetitions to tell")
    return (
        f"In the last {tables.late_rounds(results)} rounds, {_quoted(results, best)} accepts "
        f"{rate(np.nanmean(explored))} of the good people whom the past excluded (“{group}”), and "
        f"{rate(np.nanmean(without))} of them without exploration: {verdict} (95 % interval "
        f"of the difference {_ends(difference, rate)})."
    )


def _distance(results: Results, at: int, best: str, reference: str) -> str:
    difference = tables.paired(results, "late_revenue", best, reference)[at]
    late = tables.summary(results, "late_revenue").estimate.mean[at]
    earned, possible = (float(late[results.methods.index(n)]) for n in (best, reference))
    share = f", {100 * earned / possible:.0f}\u00a0% of its revenue" if possible > 0 else ""
    return (
        f"In the last {tables.late_rounds(results)} rounds, {_quoted(results, best)} against the "
        f"reference {_quoted(results, reference)}: {_compared(difference)}{share}."
        f"{_REFERENCE_BEATEN if difference.side() == 'above' else ''}"
    )


def _levels(results: Results, at: int) -> list[str]:
    """Say whether the variants earn what the paper prints, if this run is on the paper's data.

    The paper's standard error is not known. It is at most its bracket, a standard deviation over
    rounds and repetitions, over the square root of its repetitions.
    """
    key, variants = results.about["experiment"]["published"], _ran(results)
    if key is None or results.about["data"]["name"] != paper_data(key):
        return []
    ours = tables.summary(results, "revenue").estimate[at]
    known = [ours[results.methods.index(name)] for name in variants]
    if results.alphas[at] != ALPHA or any(one.side() == "unknown" for one in known):
        return []
    printed, parts, far = published_table(key), [], []
    for name, one in zip(variants, known, strict=True):
        paper, bracket = printed[name]["revenue"]
        quoted = _quoted(results, name)
        parts.append(f"{quoted} {thousands(one.mean)} ({_ends(one, thousands)}), paper {paper:.1f}")
        noise = np.hypot(one.half_width, _NORMAL * bracket / np.sqrt(PAPER_REPETITIONS))
        far += [quoted] * bool(abs(one.mean - paper) > noise)
    verdict = "not measurably different from the paper's"
    if any(one.side() == "few" for one in known):
        verdict = "known from too few repetitions to tell them from the paper's"
    elif far:
        verdict = f"not reproduced for {_listed(far)}"
    return [f"Levels are {verdict} (thousands per round, with 95 % intervals): {'; '.join(parts)}."]


def _gap(results: Results, at: int, which: tables.Rate) -> str:
    name = {"selection_rate": "selection rates", "true_positive_rate": "true positive rates"}[which]
    pooled = tables.summary(results, f"pooled_{which}_difference").estimate.mean[at]
    rounds = tables.summary(results, f"{which}_difference").estimate.mean[at]
    floor = tables.noise_floor(results, which)[at]
    floors = np.array([np.nanmean(row) if np.isfinite(row).any() else np.nan for row in floor])
    if not np.isfinite(pooled).any():
        return f"Differences of {name} between groups are not known."
    least, most = int(np.nanargmin(pooled)), int(np.nanargmax(pooled))
    near = int((rounds < 1.5 * floors).sum())
    if len(results.methods) == 1:
        return (
            f"Pooled over rounds, {name} of groups differ by {rate(pooled[0])}. The mean "
            f"difference per round was {rate(rounds[0])}, of which chance alone explains "
            f"{_range(floors)}."
        )
    return (
        f"Pooled over rounds, {name} of groups differ least for "
        f"{_quoted(results, results.methods[least])} ({rate(pooled[least])}) and most for "
        f"{_quoted(results, results.methods[most])} ({rate(pooled[most])}). Chance alone explains "
        f"{_range(floors)} of the mean difference per round; for {near} of "
        f"{_many(len(results.methods), 'method')} that is more than two thirds of the difference."
    )


def _range(values: tables.Values, form: Format = rate) -> str:
    low, high = form(np.nanmin(values)), form(np.nanmax(values))
    return low if low == high else f"{low} to {high}"


def _sweep(results: Results) -> list[str]:
    estimate = tables.summary(results, "pooled_fdr").estimate
    if results.shape[2] < tables.TOO_FEW:
        return []
    over = [
        sum(estimate[a, i].side(alpha) == "above" for a, alpha in enumerate(results.alphas))
        for i in range(len(results.methods))
    ]
    parts = [
        f"at {k or 'none'} for {_quoted(results, method)}"
        for method, k in zip(results.methods, over, strict=True)
    ]
    return [
        f"Of the {len(results.alphas)} bounds α tried, the pooled FDR was measurably above α "
        f"{', '.join(parts)}."
    ]


def _changed(results: Results) -> list[str]:
    """Compare, for each method, the setting that earned most with the main one."""
    values, fdr = (tables.per_repetition(results, m) for m in ("revenue", "pooled_fdr"))
    sentences = []
    for i, method in enumerate(results.methods):
        means = tables.mean_known(values[:, i], axis=1)
        if method in results.about["once"] or not np.isfinite(means).any():
            continue
        best, main = int(np.nanargmax(means)), results.main
        if best == main:
            text = f"earned most with {results.settings[main]}"
        else:
            difference = tables.over_repetitions(values[best, i] - values[main, i], axis=0)
            a, b = (rate(tables.mean_known(fdr[at, i], axis=0)) for at in (best, main))
            text = (
                f"earned most with {results.settings[best]}, against {results.settings[main]}: "
                f"{_compared(difference)}, at a pooled FDR of {a} against {b}"
            )
        sentences.append(f"{_quoted(results, method)} {text}.")
    caveat = f"The best of several values of {results.varied} looks a little better than it is."
    return [*sentences, caveat]


def failed_in(results: Results, method: str, at: int) -> str:
    """Return in how many repetitions a method failed, with their seeds; empty if in none."""
    failed = results.failed(method, at)
    if not failed:
        return ""
    seeds = [str(failure.seed) for failure in failed]
    shown = ", ".join(seeds[:_SHOWN_SEEDS]) + (", …" if len(seeds) > _SHOWN_SEEDS else "")
    return f"failed in {len(failed)} of {results.shape[2]} (seed{'s' * (len(seeds) > 1)} {shown})"


def failures(results: Results) -> list[str]:
    """Return how often, with which seeds and why methods failed."""
    sentences = []
    for at, setting in enumerate(results.settings):
        bound = f", {setting}" if len(results.settings) > 1 else ""
        for method in results.methods:
            reasons = list(dict.fromkeys(f.sentence for f in results.failed(method, at)))
            if reasons:
                more = f" ({len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""
                rest = "its numbers are from the other repetitions"
                if len(results.failed(method, at)) == results.shape[2]:
                    rest = "it has no numbers"
                sentences.append(
                    f"{_quoted(results, method)}{bound} {failed_in(results, method, at)}; {rest}. "
                    f"Error: {reasons[0]}{more}"
                )
    return sentences


def nothing_found(results: Results) -> str:
    """Return a message if no method but references has any numbers; empty otherwise."""
    tried = [i for i, method in enumerate(results.methods) if method not in REFERENCES]
    if not tried or results.count("n_people")[:, tried].any():
        return ""
    return (
        "no method has any numbers, since each failed in every repetition; correct the errors "
        "above and give the same command with --fresh."
    )


def assumptions(results: Results) -> list[str]:
    """Return the special assumptions of the methods that were run."""
    methods: dict[str, list[str]] = {}
    for method in results.methods:
        if method in ASSUMPTIONS:
            methods.setdefault(ASSUMPTIONS[method], []).append(_quoted(results, method))
    return [
        f"{_listed(names)} assume{'s' * (len(names) == 1)}: {text}"
        for text, names in methods.items()
    ]


def certificate_findings(results: Results, method: str) -> list[str]:
    """Return when certificates came in all runs and, if none came, the last pilot's message."""
    at = results.main
    runs = summarise_certificates(results, method, at)
    if runs.runs == 0:
        return ["It failed in every run."]
    never = round(runs.never_share * runs.runs)
    if never == runs.runs:
        sentences = [f"No round was certified in any of {runs.runs} runs."]
    else:
        span = f"{runs.first_earliest:.0f} to {runs.first_latest:.0f}"
        sentences = [
            f"The first certificate came in round {runs.first_median:g} (median; {span} in the "
            f"{runs.runs - never} of {runs.runs} runs with a certificate). The share of certified "
            f"rounds is {rate(runs.rounds_share)}, the share of runs without a certificate "
            f"{rate(runs.never_share)}."
        ]
    for group, records in records_of(results, method, at).items():
        if not any(record["status"] == "certified" for record in records):
            for_group = "" if group is None else f" for group {group}"
            sentences.append(
                f"The first repetition was never certified{for_group}. Message of its last "
                f"round: “{records[-1]['message']}”"
            )
    return sentences
