"""Sentences about results that no table has: what was run, what explains it, what failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from fairchance.simulate.streams import repeated_rows_remarks
from fairchance.words import amount, counted, percent
from fairchance_lab.experiments import tables
from fairchance_lab.experiments.certificates import records_of
from fairchance_lab.experiments.methods import (
    ASSUMPTIONS,
    REFERENCES,
    VARIANTS,
    find_variant,
    options_of,
    taken_options,
)
from fairchance_lab.experiments.results import Counts, Results
from fairchance_lab.experiments.spec import Goal, written
from fairchance_lab.experiments.verdict import rate, with_interval
from fairchance_lab.experiments.world_spec import DELAYS, PASTS
from fairchance_lab.paper.published import (
    ALPHA,
    PAPER_REPETITIONS,
    paper_data,
    published_table,
)
from fairchance_lab.paper.released import SWITCHES, count_deviations
from fairchance_lab.paper.text import PAPER_TEXT

__all__ = ["MEANINGS", "best_variant", "certificate_findings", "exploration_findings", "failures"]
__all__ += ["listed", "nothing_found", "paper_findings", "past_findings", "settings", "thousands"]
__all__ += ["what_was_run"]

_SHOWN_SEEDS = 5
_NORMAL = 1.96  # half of a 95 % interval, in standard errors
# Of those whom the rules before accepted.
_PASTS = {
    "outcome": "{good} of the good and {bad} of the bad",
    "composition": "{size} of all, so that {good} of them were good",
    "cutoff": "only the {share} with the {side} {feature}",
    "group": "{rate} of group {group} and {others} of the others",
    "random": "{rate} at random",
    "everybody": "everybody",
    "policy": "by the policy of the synthetic lender",
}
_SIDES: dict[Any, str] = {"above": "highest", "below": "lowest"}
_DELAYS = {
    "fixed": "after {after} rounds",
    "between": "after {least} to {most} rounds",
    "geometric": "after {mean} rounds on average",
    "by-outcome": "after {good} rounds if good, after {bad} if bad",
}
# What an option of Algorithm 1's methods decides.
MEANINGS = {
    "utility": "the value of decisions",
    "strategy": "the applicants who are explored",
    "strategy_beta": "the part of g that does not depend on the score",
    "strategy_floor": "the lowest score that counts as itself",
    "strategy_reading": "how g and the share of a group are combined",
    "learner": "the model of a good outcome",
    "maturity": "rounds until outcomes are final",
    "noise": "how often outcomes are recorded wrongly",
    "group_mode": "what groups are used for",
    "group_as_feature": "whether the group is a feature",
    "attributes": "whether attributes are compared together or apart",
    "alpha_exploit": "the part of α for the exploit region",
    "alpha_exploit_start": "that part in round 1",
    "alpha_exploit_power": "how fast that part grows",
    "reserve": "the part of α that is left to exploration",
    "slack": "the slack of the bound and of the selection rate",
    "min_selection_rate": "the smallest accepted share of the exploit region",
    "explore": "whether anyone is explored",
    "coverage": "how the exploit region is found",
    "coverage_threshold": "where the exploit region begins",
    "coverage_reference_size": "applicants in a full round",
    "fairness": "the rate that must be similar in all groups",
    "fairness_difference": "the largest difference between groups",
    "fairness_ratio": "the smallest ratio between groups",
    "fairness_in": "where similar rates are enforced",
    "thresholds": "one threshold, or one for each group",
    "constraints": "where the bound on mistakes holds",
    "split": "the outcomes that scores and thresholds are learned from",
    "weights": "the weights of outcomes",
    "weight_cap": "the largest weight of an outcome",
    "min_outcomes": "own outcomes before thresholds rest on them alone",
    "first_round": "how round 1 decides",
    "bounds_in": "where the bound on mistakes is enforced",
}


def thousands(value: Any) -> str:
    """Write an amount in thousands, with one decimal.

    Examples
    --------
    >>> thousands(-12.345), thousands(-0.01), thousands(float("nan"))
    ('−12.3', '0.0', '–')
    """
    if not np.isfinite(value):
        return "–"
    text = f"{float(value):,.1f}"
    return text.replace("-", "−" if text.strip("-0.,") else "")


def _quoted(results: Results, method: str) -> str:
    return f"“{results.label(method)}”"


def listed(items: Sequence[str]) -> str:
    """Return items separated by commas and "and".

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


# What was run


def what_was_run(results: Results) -> str:
    """Describe the run: methods, rounds, applicants, repetitions and bounds."""
    n_settings, n_methods, repetitions, rounds, _ = results.shape
    people = results.count("n_people").max(axis=(0, 1)).sum(axis=-1)  # 0 if a method failed
    low, high = int(people.min()), int(people.max())
    size = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    bound = f"α = {percent(results.alphas[results.main])}"
    if results.varied == "α":
        bound = f"α = {listed([percent(alpha) for alpha in results.alphas])}"
    elif n_settings > 1:
        bound += f" and {results.varied} = "
        bound += listed([setting.partition(" = ")[2] for setting in results.settings])
    world = results.about["experiment"].get("description", "")
    return (
        f"{world} {counted(n_methods, 'method')} decided {counted(rounds, 'round')} of {size} "
        f"applicants each, in {counted(repetitions, 'repetition')}, with {bound}."
    ).lstrip()


def settings(results: Results) -> list[str]:
    """Describe the past, the outcomes, the value of decisions and the options of methods."""
    experiment = results.about["experiment"]
    world, goal = experiment["world"], experiment["goal"]
    past = [_in_words(_PASTS, PASTS, rule, "rule") for rule in world["past"]]
    text = f"The past accepted {'; of these, it accepted '.join(past)}."
    if "A1" in experiment["switches"]:
        text += " Outcomes of the applicants whom it rejected are known all the same (A1)."
    value = (
        f"Accepting a good applicant gains {amount(goal['gain'])}, accepting a bad one loses "
        f"{amount(goal['loss'])}."
    )
    people = results.count("n_people") + results.count("n_past")  # those of the history once
    drawn, rows = int(people.sum(axis=(3, 4)).max()), results.about["data"]["rows"]
    again = repeated_rows_remarks(rows, drawn) if rows and not world.get("n_parts") else []
    return [text, *_feedback(world), value, *again, *_options(results), *_assumptions(results)]


def _in_words(
    words: dict[str, str], kinds: dict[str, Any], options: dict[str, Any], key: str
) -> str:
    """Describe a rule by its options, or the defaults of its class."""
    name = options.get(key, "fixed")
    own = fields(kinds[name]) if name in kinds else ()
    values: dict[str, Any] = {field.name: field.default for field in own} | options
    for part, value in values.items():
        if isinstance(value, float) and part != "mean":
            values[part] = percent(value)
    values["side"] = _SIDES.get(values.get("side"), "")
    return words[name].format(**values)


def _feedback(world: dict[str, Any]) -> Iterator[str]:
    given = world.get("feedback", {})
    parts = []
    if given.get("delay"):
        parts.append(f"arrive {_in_words(_DELAYS, DELAYS, given['delay'], 'kind')}")
    if given.get("missing"):
        parts.append(f"never arrive for {percent(given['missing'])} of the accepted")
    if given.get("wrong"):
        parts.append(f"are wrong at first for {percent(given['wrong'])} of the accepted")
    if given.get("corrected_after") is not None:
        parts.append(f"are corrected after {counted(given['corrected_after'], 'round')}")
    if parts:
        yield f"Outcomes {'; they '.join(parts)}."
    if world.get("drift"):
        changes = listed([f"{name} {value}" for name, value in sorted(world["drift"].items())])
        yield f"The world changes from round to round: {changes.replace('_', ' ')}."


def _option(key: str, value: Any) -> str:
    meaning = MEANINGS.get(key, "an option of another version")  # of stored results
    return f"{key} = {written(value)} ({meaning})"


def _options(results: Results) -> list[str]:
    """Describe the options of Algorithm 1's methods, variants, and methods that ran once."""
    experiment = results.about["experiment"]
    given, goal = dict(experiment["classifier"]), Goal(**experiment["goal"])
    if results.varied == "paper_text":
        given["paper_text"] = True
    variants = experiment["variants"]
    by_method = {name: taken_options(name, goal, given, variants) for name in results.methods}
    taken = {name: options for name, options in by_method.items() if options}
    sentences = []
    if given.pop("paper_text", False):
        sentences.append("paper_text = true takes the paper's own choices where ours differ.")
        given = {**PAPER_TEXT, **given}
    for key, value in given.items():
        names = [name for name, options in taken.items() if options.get(key) == value]
        some = f", for {listed(names) or 'no method'}" if len(names) < len(taken) else ""
        sentences.append(f"Algorithm 1's methods have {_option(key, value)}{some}.")
    for name, options in variants.items():
        own, base = (find_variant(n, variants) for n in (name, options["method"]))
        if name in results.methods and own is not None and base is not None:
            known = options_of(base, goal, {})
            own_options = options_of(own, goal, {}).items()
            changed = [_option(key, value) for key, value in own_options if known.get(key) != value]
            text = f"“{name}” is {options['method']} with {listed(changed or ['no changes'])}"
            sentences.append(f"{text}{' (paper_text)' if options.get('paper_text') else ''}.")
    if results.about["once"]:
        unchanged = listed([_quoted(results, name) for name in results.about["once"]])
        sentences.append(
            f"{results.varied} does not change {unchanged}, which ran once, with "
            f"{results.settings[results.main]}."
        )
    return sentences


def _assumptions(results: Results) -> list[str]:
    """Return the special assumptions of the methods that were run."""
    methods: dict[str, list[str]] = {}
    for method in results.methods:
        if method in ASSUMPTIONS:
            methods.setdefault(ASSUMPTIONS[method], []).append(_quoted(results, method))
    return [
        f"{listed(names)} assume{'s' * (len(names) == 1)}: {text}"
        for text, names in methods.items()
    ]


# What explains it


def best_variant(results: Results, at: int) -> str | None:
    """Return the variant of Algorithm 1 with the highest revenue, or None."""
    means = tables.summary(results, "revenue").estimate.mean[at]
    earned = {name: float(means[results.methods.index(name)]) for name in _ran(results)}
    known = {name: mean for name, mean in earned.items() if np.isfinite(mean)}
    return max(known, key=known.__getitem__, default=None)


def _ran(results: Results) -> list[str]:
    return [name for name in VARIANTS if name in results.methods]


def past_findings(results: Results) -> list[str]:
    """Say whether the past policy kept α: by the history, and by round 1 of a variant."""
    at = results.main
    follower = best_variant(results, at)
    if follower is None or not results.count("n_past_accepted")[at].any():
        return []
    i, names = results.methods.index(follower), ("people", "accepted", "accepted_good")
    past, first = (
        [results.count(f"n_{name}")[at, i, :, 0].sum(axis=-1) for name in these]
        for these in (("past", "past_accepted", "past_accepted_good"), names)
    )
    return [
        f"In the history, the past accepted {_accepted(*past)}. Round 1 of "
        f"{_quoted(results, follower)} follows the past and accepted {_accepted(*first)}.",
        f"The theory assumes that the past keeps α = {percent(results.alphas[at])}. Round 1 shows "
        f"it better than the history, which may be selected by its outcomes.",
    ]


def _accepted(people: Counts, accepted: Counts, good: Counts) -> str:
    """Say what share of the people was accepted, and how many of these were bad."""
    fdr = tables.over_repetitions(tables.share(accepted - good, accepted), axis=0)
    return f"{rate(accepted.sum() / people.sum())}, of whom {with_interval(fdr)} were bad"


def exploration_findings(results: Results) -> list[str]:
    """Say so if the past left little to explore."""
    past = results.about["experiment"]["world"]["past"]
    if [rule.get("rule") for rule in past] != ["outcome"]:
        return []
    return [
        "The past chose by the outcome alone, so the history covers applicants of every kind, and "
        "exploration can hardly help."
    ]


def paper_findings(results: Results) -> list[str]:
    """Say what is to be known before comparing with the paper, and whether levels agree."""
    experiment = results.about["experiment"]
    table, data, sentences = experiment["published"], results.about["data"]["name"], []
    on = experiment["switches"]
    if table is not None and data != paper_data(table):
        sentences.append(
            f"The paper used other data, “{paper_data(table)}”, and this run “{data}”. Compare "
            f"directions, not values."
        )
    if table is not None and ALPHA not in results.alphas:
        sentences.append(f"The paper's table is for α = {percent(ALPHA)}, which was not run.")
    if table is not None:
        sentences += _levels(results, table)
    if on:
        known = "; ".join(f"{name} ({SWITCHES.get(name, 'unknown')})" for name in on)
        scope = "B and C for variants and ablations of the algorithm only"
        sentences.append(f"As in the paper's released code ({scope}): {known}.")
        sentences.append(count_deviations())
    elif table is not None:
        sentences.append("No deviation of the paper's released code was switched on.")
    if "E2" in on:
        sentences.append(
            "Revenue “without its sign” is the mean of absolute values of rounds, as in the "
            "released code (E2). Everything else keeps the sign."
        )
    if "A9" in on:
        sentences.append(
            "All repetitions share one resample of the data (A9), so intervals over repetitions "
            "are too sure, and the paper's claims are not examined."
        )
    return sentences


def _levels(results: Results, table: str) -> list[str]:
    """Say whether the variants earn what the paper prints, if this run is on the paper's data.

    The paper's standard error is not known. It is at most its bracket, a standard deviation over
    rounds and repetitions, over the square root of its repetitions.
    """
    at = results.main
    ours = tables.summary(results, "revenue").estimate[at]
    known = {name: ours[results.methods.index(name)] for name in _ran(results)}
    sides = {one.side() for one in known.values()}
    elsewhere = results.about["data"]["name"] != paper_data(table) or results.alphas[at] != ALPHA
    if elsewhere or not known or "unknown" in sides:
        return []
    if "few" in sides:
        return ["Repetitions are too few to tell revenue from the paper's."]
    far = []
    for name, one in known.items():
        paper, bracket = published_table(table)[name]["revenue"]
        noise = np.hypot(one.half_width, _NORMAL * bracket / np.sqrt(PAPER_REPETITIONS))
        far += [_quoted(results, name)] * bool(abs(one.mean - paper) > noise)
    if far:
        return [f"The paper's level of revenue is not reproduced for {listed(far)}."]
    return ["Revenue is not measurably different from the paper's."]


def certificate_findings(results: Results, method: str) -> list[str]:
    """Return the last message for each group without a certificate in the first repetition."""
    return [
        f"The first repetition was never certified{'' if group is None else f' for {group}'}. "
        f"Message of its last round: “{records[-1]['message']}”"
        for group, records in records_of(results, method, results.main).items()
        if not any(record["status"] == "certified" for record in records)
    ]


# What failed


def failures(results: Results) -> list[str]:
    """Return how often, with which seeds and why methods failed."""
    sentences, repetitions = [], results.shape[2]
    for at, setting in enumerate(results.settings):
        bound = f", {setting}" if len(results.settings) > 1 else ""
        for method in results.methods:
            failed = results.failed(method, at)
            if failed:
                seeds = f"seed{'s' * (len(failed) > 1)} "
                seeds += ", ".join([str(f.seed) for f in failed][:_SHOWN_SEEDS])
                seeds += ", …" * (len(failed) > _SHOWN_SEEDS)
                rest = "its numbers are from the others"
                rest = "it has no numbers" if len(failed) == repetitions else rest
                others = len({f.sentence for f in failed}) - 1
                more = f" ({counted(others, 'other reason')})" if others else ""
                sentences.append(
                    f"{_quoted(results, method)}{bound} failed in {len(failed)} of {repetitions} "
                    f"repetitions ({seeds}); {rest}. Error: {failed[0].sentence}{more}"
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
