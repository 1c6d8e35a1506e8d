"""The part of a report that is about certificates: when they came, how far they reached."""

from __future__ import annotations

from html import escape

from matplotlib.figure import Figure

from secondlook.lab.experiments import tables
from secondlook.lab.experiments.certificates import certified_methods, records_of, summarised
from secondlook.lab.experiments.ladder_figure import ladder
from secondlook.lab.experiments.page_parts import figure, sentence_list
from secondlook.lab.experiments.results import Results
from secondlook.lab.experiments.words import label, rate

__all__ = ["draw_all", "html", "said"]

_CAPTION = (
    "The first repetition of “{}”: shares that the ladder in use has a certificate for, the share "
    "deployed in each round, and what the next step needs"
)


def draw_all(results: Results) -> dict[str, Figure]:
    """Return a picture of the first repetition for every certified method, by name."""
    alpha = results.alphas[tables.main_alpha(results)]
    records = {name: records_of(results, name, alpha) for name in certified_methods(results)}
    return {f"certificate-{name}": ladder(found) for name, found in records.items() if found}


def html(results: Results, section: str, svgs: dict[str, str]) -> str:
    """Return the part of a page, empty if no method gives certificates.

    Parameters
    ----------
    results
        Results.
    section
        Name of the section, before all ids.
    svgs
        Pictures of ``draw_all`` as SVG.
    """
    methods = certified_methods(results)
    if not methods:
        return ""
    parts = [f'<h3 id="{section}-certificate">The certificate</h3>\n']
    for name in methods:
        sentences = said(results, name)
        parts.append(f"<h4>{escape(label(results, name))}</h4>\n")
        parts.append(sentence_list("findings", sentences))
        if f"certificate-{name}" in svgs:
            caption = _CAPTION.format(label(results, name))
            key = f"certificate-{name}"
            parts.append(
                figure(f"{section}-{key}", svgs[key], f"{caption}. {sentences[0]}", caption)
            )
    return "".join(parts)


def said(results: Results, method: str) -> list[str]:
    """Say when certificates came in all runs and, where none came, what the last pilot said."""
    at = tables.main_alpha(results)
    found = summarised(results, method, at)
    if found.runs == 0:
        return ["It failed in every run."]
    never = round(found.never_share * found.runs)
    if never == found.runs:
        sentences = [f"No round was certified in any of {found.runs} runs."]
    else:
        span = f"{found.first_earliest:.0f} to {found.first_latest:.0f}"
        sentences = [
            f"The first certificate came in round {found.first_median:g} (median; {span} in the "
            f"{found.runs - never} of {found.runs} runs that had one). Of all rounds "
            f"{rate(found.rounds_share)} were certified. The share of runs that were never "
            f"certified is {rate(found.never_share)}."
        ]
    for group, records in records_of(results, method, results.alphas[at]).items():
        if not any(record["status"] == "certified" for record in records):
            whom = "" if group is None else f" for group {group}"
            sentences.append(
                f"The first repetition was never certified{whom}; its last pilot said: "
                f"“{records[-1]['message']}”"
            )
    return sentences
