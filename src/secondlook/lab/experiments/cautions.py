"""What to know of single methods before looking at their numbers: failures and assumptions."""

from __future__ import annotations

from secondlook.lab.experiments.methods import ASSUMPTIONS, REFERENCES
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.words import listed, quoted

__all__ = ["assumptions", "failed_in", "failures", "nothing_found"]

_FEW = 5  # seeds that are named


def failed_in(results: Results, method: str, at: int) -> str:
    """Say in how many repetitions a method failed, with their seeds; empty if in none."""
    failed = results.failed(method, at)
    if not failed:
        return ""
    seeds = [str(one.seed) for one in failed]
    shown = ", ".join(seeds[:_FEW]) + (", …" if len(seeds) > _FEW else "")
    return f"failed in {len(failed)} of {results.shape[2]} (seed{'s' * (len(seeds) > 1)} {shown})"


def failures(results: Results) -> list[str]:
    """Say of each method that failed in how many repetitions, with which seeds, and why."""
    said = []
    for at, alpha in enumerate(results.alphas):
        bound = f", α = {alpha:g}" if len(results.alphas) > 1 else ""
        for method in results.methods:
            reasons = list(dict.fromkeys(one.sentence for one in results.failed(method, at)))
            if reasons:
                more = f" ({len(reasons) - 1} more reasons)" if len(reasons) > 1 else ""
                rest = "its numbers are of the other repetitions"
                if len(results.failed(method, at)) == results.shape[2]:
                    rest = "it has no numbers"
                said.append(
                    f"{quoted(results, method)}{bound} {failed_in(results, method, at)}; {rest}. "
                    f"It said: {reasons[0]}{more}"
                )
    return said


def nothing_found(results: Results) -> str:
    """Say that no method has any numbers, what others are measured against aside; else nothing."""
    tried = [i for i, method in enumerate(results.methods) if method not in REFERENCES]
    if not tried or results.count("n_people")[:, tried].any():
        return ""
    return (
        "no method has any numbers, since each failed in every repetition; mend what is said of "
        "them, and give the same command with --fresh."
    )


def assumptions(results: Results) -> list[str]:
    """Say what must hold for the methods that were run to be right, where they need more."""
    found: dict[str, list[str]] = {}
    for method in results.methods:
        if method in ASSUMPTIONS:
            found.setdefault(ASSUMPTIONS[method], []).append(quoted(results, method))
    return [
        f"{listed(names)} assume{'s' * (len(names) == 1)}: {text}" for text, names in found.items()
    ]
