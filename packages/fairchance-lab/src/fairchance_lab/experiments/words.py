"""Sentences about results that the page, the terminal and notebooks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fairchance.words import amount, counted, percent
from fairchance.words.rounds import needed
from fairchance_lab.experiments.methods import REFERENCES
from fairchance_lab.experiments.paired_tests import FEW
from fairchance_lab.experiments.results import Results
from fairchance_lab.experiments.tables import TOO_FEW, Estimate
from fairchance_lab.experiments.verdict import Standing, Verdict

__all__ = ["beyond", "by_group", "certificate", "certificate_of", "earned", "exploration"]
__all__ += ["failures", "in_groups", "listed", "loser", "mistakes", "money", "precision", "rate"]
__all__ += ["takeaway", "with_interval"]


def rate(value: Any) -> str:
    """Write a share as a percentage with one decimal.

    Examples
    --------
    >>> rate(0.14159), rate(0.15)
    ('14.2 %', '15 %')
    """
    return percent(round(float(value), 3))


def money(thousands: Any) -> str:
    """Write thousands as a sum of money with three digits that count.

    Examples
    --------
    >>> money(87.4567), money(-0.0123)
    ('87,500', '−12.3')
    """
    return amount(float(f"{1000 * float(thousands):.3g}"))


def with_interval(estimate: Estimate, write: Callable[[Any], str] = rate) -> str:
    """Write an estimate with its 95 % interval, if it has one."""
    ends = f" (95 % interval {write(estimate.low)} to {write(estimate.high)})"
    return f"{write(estimate.mean)}{ends if np.isfinite(estimate.half_width) else ''}"


def listed(items: Sequence[str]) -> str:
    """Return items separated by commas and "and".

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def takeaway(verdict: Verdict) -> str:
    """Return one sentence to remember."""
    best, bound = verdict.best, f"α = {percent(verdict.alpha)}"
    if best is None:
        return mistakes(verdict)
    kept = f"kept {bound}"
    if best.light != "green" and verdict.repetitions < TOO_FEW:
        kept = f"had {rate(best.mistakes.mean)} bad at {bound}"
    elif best.light != "green":
        above = best.mistakes.mean > verdict.alpha
        kept = f"may be above {bound}" if above else f"seems to keep {bound}"
    if best.certificate is not None and best.certificate.never_share < 1:
        kept += ", with a certificate,"
    if verdict.idle is None or verdict.gain is None:
        alone = "" if best.explored else ", without exploration"
        tried = [one for one in verdict.standings if one.method not in REFERENCES]
        among = "" if tried[0] is best else " of the methods not measurably above it"
        return f"Best: “{best.label}” {kept} and earned most{among}{alone}."
    sure = "" if verdict.gain.side() == "above" else ", though not measurably"
    return (
        f"Best: “{best.label}” {kept} and earned {money(verdict.gain.mean)} a round more than "
        f"“{verdict.idle.label}”, the best without exploration{sure}."
    )


def exploration(verdict: Verdict) -> str:
    """Say what exploring itself changed; empty if that is not known."""
    if verdict.exploring is None:
        return ""
    found = {
        "above": "Exploring pays",
        "around": "Exploring pays nothing measurable",
        "below": "Exploring does not pay",
    }.get(verdict.exploring.side(), "Too few repetitions to tell whether exploring pays")
    added = with_interval(verdict.exploring, money)
    return f"{found}: it adds {added} a round to what Algorithm 1 earns."


def earned(verdict: Verdict) -> str:
    """Say what the best method earned."""
    best, late = verdict.best, f"a round in the last {counted(verdict.late_rounds, 'round')}"
    if best is None:
        return "No method qualifies as the best."
    if verdict.yardstick is None or np.isnan(best.share.mean):
        return f"{with_interval(best.earned, money)} {late}."
    share = with_interval(best.share)
    return f"{money(best.earned.mean)} {late}, {share} of “{verdict.yardstick.label}”."


def beyond(results: Results, verdict: Verdict) -> str:
    """Say how the best method could earn more than the yardstick; empty if it did not."""
    best, other = verdict.best, verdict.yardstick
    if best is None or other is None or not best.share.mean > 1:
        return ""
    rows = results.about["data"]["rows"]
    repeat = f"draws from {rows:,} rows repeat them, and methods can memorise them"
    why = repeat if rows else "it is no upper bound for all rules"
    return f"Shares above 100 % of “{other.label}” say little: {why}."


def mistakes(verdict: Verdict) -> str:
    """Say how the mistakes of the best method compare with α."""
    bound = f"α = {percent(verdict.alpha)}"
    if verdict.best is None:
        tried = [one for one in verdict.standings if one.method not in REFERENCES]
        if all(one.light == "red" for one in tried):
            return f"No method kept {bound}."
        found = "was below" if verdict.repetitions < TOO_FEW else "seems to keep"
        return f"No method {found} {bound}."
    known = verdict.best.mistakes
    if np.isnan(known.mean):
        return "No one was accepted, so there were no mistakes."
    side = {"above": "above", "around": "about", "below": "below"}.get(known.side(verdict.alpha))
    takes = f"a verdict on {bound} takes {TOO_FEW} repetitions that accept"
    found = f"{side} {bound}" if side else takes
    return f"{with_interval(known)} of the accepted were bad: {found}."


def loser(verdict: Verdict) -> str:
    """Say why the worst method is the worst; empty without one."""
    worst, best, other = verdict.worst, verdict.best, verdict.yardstick
    if worst is None:
        return ""
    if worst.light == "red":
        more = best is not None and worst.earned.mean > best.earned.mean
        broke = f"earned {money(worst.earned.mean)} a round by breaking α" if more else "broke α"
        bad = rate(worst.mistakes.mean)
        return f"Worst: “{worst.label}” {broke}, as {bad} of the accepted were bad."
    share = worst.share.mean
    part = "" if other is None or np.isnan(share) else f", {rate(share)} of “{other.label}”"
    return f"Worst: “{worst.label}” earned least, {money(worst.earned.mean)} a round{part}."


def certificate(verdict: Verdict) -> str:
    """Say since when there were certificates, or what is missing."""
    if verdict.certified is None:
        return "No method here gives certificates."
    text, best = certificate_of(verdict, verdict.certified), verdict.best
    if best is None or best is verdict.certified:
        return text
    return f"“{best.label}” gives no certificates. {text}"


def certificate_of(verdict: Verdict, one: Standing) -> str:
    """Say since when a method had certificates, or what is missing."""
    name, runs = "It" if one is verdict.best else f"“{one.label}”", one.certificate
    if runs is None:
        return f"{name} gives no certificates."
    reached = round((1 - runs.never_share) * runs.runs)
    if reached:
        some = "" if reached == runs.runs else f" in {reached} of {runs.runs} runs"
        return (
            f"{name} was first certified in round {runs.first_median:g} (median){some}, and "
            f"in {rate(runs.rounds_share)} of all rounds."
        )
    more = f"; {needed(one.missing)}" if one.missing > 0 else ""
    return f"{name} reached no certificate in {counted(runs.runs, 'run')}{more}."


def in_groups(verdict: Verdict) -> str:
    """Say whether the best method kept the bound in each group; empty for one group."""
    if len(verdict.groups) < 2:
        return ""
    broken = [one for one in verdict.groups if one.light == "red"]
    named = ", ".join(f"{one.group} ({rate(one.mistakes.mean)} bad)" for one in broken)
    return f"It broke α for {named}." if broken else "It is measurably above α for no group."


def by_group(verdict: Verdict) -> str:
    """Say what was bad and what was accepted in the groups at both ends; empty for one group."""
    if len(verdict.groups) < 2:
        return ""

    def ends(name: str) -> str:
        means = [(float(getattr(one, name).mean), one.group) for one in verdict.groups]
        known = sorted(pair for pair in means if np.isfinite(pair[0]))
        pairs = dict.fromkeys([*known[-1:], *known[:1]])
        return " and ".join(f"{rate(v)} of {group}" for v, group in pairs) or "unknown"

    broken = any(one.light == "red" for one in verdict.groups)
    why = " α bounds the mistakes of all groups together." if broken else ""
    return f"Bad among the accepted: {ends('mistakes')}. Accepted: {ends('accepted')}.{why}"


def precision(verdict: Verdict) -> str:
    """Say what so many repetitions can show."""
    text, more = counted(verdict.repetitions, "repetition"), ""
    if verdict.repetitions < TOO_FEW:
        more = f" With fewer than {TOO_FEW}, no method or group is said to keep or break α."
    if verdict.lead is None or verdict.runner_up is None or np.isnan(verdict.detectable):
        return f"{text}: no difference between methods can be tested.{more}"
    few = " are few" if verdict.repetitions < FEW else ""
    return (
        f"{text}{few}: a lead of {money(verdict.detectable)} a round would be noticed in 8 of 10 "
        f"such runs; the lead over the second best, “{verdict.runner_up.label}”, is "
        f"{with_interval(verdict.lead, money)}.{more}"
    )


def failures(results: Results) -> Iterator[str]:
    """Say how often methods failed, and the first error of each."""
    for at, setting in enumerate(results.settings):
        where = f", {setting}" if len(results.settings) > 1 else ""
        for method in results.methods:
            failed = results.failed(method, at)
            if failed:
                often = f"{len(failed)} of {results.shape[2]} repetitions"
                first = f"seed {failed[0].seed}: {failed[0].sentence}"
                yield f"“{results.label(method)}”{where} failed in {often}; first with {first}"
