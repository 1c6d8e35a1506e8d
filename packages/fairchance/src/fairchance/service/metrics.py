"""Numbers for Prometheus, read from the record when they are asked for.

So all workers tell the same, and a worker that ends takes nothing with it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime

from fairchance.ledger.health import check_health
from fairchance.ledger.summary import Summary
from fairchance.ledger.view import ProgramView
from fairchance.words import LIGHTS

__all__ = ["metrics_text"]

_AGES = (30, 90, 180, 360)  # days; bounds of the ages of pending outcomes
_LATE = 180.0  # days
Sample = tuple[dict[str, str], float]


def metrics_text(view: ProgramView, *, groups: bool = True) -> str:
    """Return the numbers of a program, in the text format of Prometheus."""
    summary = view.summary(groups=groups, money=False)
    lines = []
    for name, about, samples in _gauges(view, summary):
        lines += [f"# HELP fairchance_{name} {about}", f"# TYPE fairchance_{name} gauge"]
        lines += [
            f"fairchance_{name}{_labels({'program': summary.program} | labels)} {_number(value)}"
            for labels, value in samples
        ]
    return "\n".join(lines) + "\n"


def _gauges(view: ProgramView, summary: Summary) -> Iterator[tuple[str, str, list[Sample]]]:
    n, accepted, expected = view.reader.draws()
    yield "decisions", "Applicants decided on, in the open round too.", [({}, n)]
    yield "accepted", "Applicants whom the program accepted.", [({}, accepted)]
    yield "accepted_expected", "The sum of their probabilities of acceptance.", [({}, expected)]
    outcomes = summary.outcomes
    states = ("good", "bad", "withdrawn", "not_taken", "pending")
    known: list[Sample] = [({"outcome": one}, getattr(outcomes, one)) for one in states]
    yield "outcomes", "Outcomes of closed rounds, without applicants accepted by hand.", known
    yield (
        "pending",
        "Pending outcomes of closed rounds, also of applicants accepted by hand, that are at most "
        "so many days old.",
        [
            ({"days": _number(most)}, summary.waiting().n - summary.waiting(most).n)
            for most in (*_AGES, math.inf)
        ],
    )
    ladders = [records[-1] for records in summary.ladders().values()]
    names = ["" if name is None else name for name in summary.ladders()]
    pairs = list(zip(names, ladders, strict=True))
    wealth: list[Sample] = [({"group": name}, one.log_wealth) for name, one in pairs]
    needed: list[Sample] = [({"group": name}, one.threshold) for name, one in pairs]
    yield "log_wealth", "Evidence of the deployed policy, as the logarithm of its wealth.", wealth
    yield "log_wealth_needed", "The evidence that certifies it.", needed
    opened = summary.open_round
    if opened is not None:
        age = datetime.fromisoformat(summary.at) - datetime.fromisoformat(opened.at)
        yield "open_round", "The number of the open round.", [({}, opened.round)]
        yield "open_round_seconds", "The age of the open round.", [({}, age.total_seconds())]
        yield "open_round_decisions", "Applicants of the open round.", [({}, opened.n_people)]
    yield (
        "ramp",
        "The share of applicants on whom the program decides.",
        [({}, summary.control.ramp)],
    )
    yield "paused", "Whether the program is paused.", [({}, summary.control.paused)]
    last = summary.rounds[-1].round if summary.rounds else 0
    yield "round", "The last closed round.", [({}, last)]
    worst: dict[str, int] = {}
    for check in check_health(summary, _LATE):
        value = LIGHTS.index(check.light)
        worst[check.question] = min(value, worst.get(check.question, value))
    lights: list[Sample] = [({"question": name}, value) for name, value in worst.items()]
    yield "light", "The worst light of a question: 0 red, 1 amber, 2 green.", lights


def _labels(labels: dict[str, str]) -> str:
    inside = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{inside}}}"


def _escaped(value: str) -> str:
    r"""Return a value of a label.

    Examples
    --------
    >>> print(_escaped('a "b"'))
    a \"b\"
    """
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    """Return a number as Prometheus writes it.

    Examples
    --------
    >>> _number(3.0), _number(math.inf), _number(math.nan)
    ('3', '+Inf', 'NaN')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value)).removesuffix(".0")
