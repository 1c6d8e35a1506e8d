"""How a program decides, in a table: what its first entry says, and why people were refused."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from secondlook.cli.programs.attention import people, share
from secondlook.lab.experiments.page_parts import cell, heads, table
from secondlook.ledger.particulars import Particulars, Refusals
from secondlook.ledger.retention import retention_months
from secondlook.ledger.summary import Summary

__all__ = ["how_it_decides"]

_METHODS = {
    "CertifiedClassifier": "rounds carry a promise once outcomes of earlier ones have shown that "
    "the rule keeps the bound, and are pilots until then",
    "PartialFeedbackClassifier": "rounds hold an estimate of the mistakes under the bound, and "
    "promise nothing",
}
_MODES = {
    "aware": "a decision may depend on the group of the person decided on",
    "blind": "the group of a person changes no decision on that person; groups of people whose "
    "outcome is known may shape what is learned",
    "audit": "no group changes any decision; groups are read to be counted",
}
_SHOWN = ("alpha", "delta", "learner", "group_mode", "maturity", "patience", "utility")
_SECRET = ("random_state",)  # whoever knows it knows who will be drawn
_MOST = 10  # columns named


def how_it_decides(found: Summary, more: Particulars) -> str:
    """Return what the record says of how decisions are made, as tables."""
    rows = [
        (name, f'<td class="words">{escape(" ".join(text.split()))}</td>')
        for name, text in _settings(found, more)
    ]
    note = "As the first entry of the chain has it; it never changes."
    return table("Settings", note, heads(["On the record"]), rows, "What") + _refusals(
        more.refusals
    )


def _settings(found: Summary, more: Particulars) -> Iterator[tuple[str, str]]:
    says, about = more.says, found.about
    settings = says.get("settings", {})
    version = says.get("secondlook", "of an unknown version")
    yield "Started", f"{more.at[:16]} UTC by {more.by}, with secondlook {version}"
    method = _METHODS.get(found.classifier)
    yield "Method", found.classifier + (f": {method}" if method else "")
    yield "Learner", _learner(settings.get("learner", "not told"))
    yield "Decides by", _features(says)
    yield "Protected attributes", _groups(says)
    yield from _outcomes(says, about)
    bound = found.promise.alpha
    yield "α, the bound on the share of bad", "none" if bound is None else f"{bound:g}"
    if found.promise.delta is not None:
        promised = f"{found.promise.delta:g}, for all certified rounds together"
        yield "δ, the chance that a certified round breaks it", promised
    if "maturity" in settings:
        yield "Maturity", _rounds(settings["maturity"], "rounds until outcomes count")
    if "patience" in settings:
        late = "rounds after which an outcome that has not come counts as bad in the tests"
        yield "Patience", _rounds(settings["patience"], late, "the tests wait for every outcome")
    worth = settings.get("utility", "not told")
    yield "Worth of decisions", "the method's own" if worth == "None" else worth
    yield "Missing values", _missing(about)
    yield "Data of people are kept", f"{retention_months(about)} months, or longer under a hold"
    others = [f"{key} = {text}" for key, text in settings.items() if key not in (*_SHOWN, *_SECRET)]
    if others:
        yield "Other settings", ", ".join(others)


def _learner(said: str) -> str:
    return "the method's own logistic model" if said == "None" else said


def _features(says: dict[str, Any]) -> str:
    columns = says.get("columns") or {}
    names, texts = columns.get("names"), columns.get("texts", ())
    if names is None:
        n = len((says.get("reference") or {}).get("names", ()))
        return f"{n} columns without names" if n else "columns without names"
    return ", ".join(f"{one} (text)" if one in texts else str(one) for one in names)


def _groups(says: dict[str, Any]) -> str:
    if not says.get("has_groups", False):
        return "none are known to the program"
    names = ", ".join(map(str, says.get("group_names") or ["one without a name"]))
    mode = str(says.get("group_mode", ""))
    meaning = _MODES.get(mode)
    return f"{names}; mode {mode}" + (f": {meaning}" if meaning else "")


def _outcomes(says: dict[str, Any], about: dict[str, Any]) -> Iterator[tuple[str, str]]:
    words = about.get("outcomes") or {
        "good": [says.get("good", "not told")],
        "bad": [says.get("bad", "not told")],
    }
    for state in ("good", "bad"):
        yield f"A {state} outcome", ", ".join(repr(one) for one in words.get(state, ()))
    never = ", ".join(repr(one) for one in words.get("indeterminate", ()))
    yield "Never to be known", never or "no word of a file; people are withdrawn one by one"


def _rounds(said: str, words: str, none: str = "none") -> str:
    return none if said == "None" else f"{said} {words}"


def _missing(about: dict[str, Any]) -> str:
    if "missing" not in about:
        return "as the learner takes them"
    if about["missing"]:
        return "rows with missing features are used; the learner says what is read in their place"
    return "rows with missing features are refused"


def _refusals(found: Refusals) -> str:
    if not found.n:
        return ""
    rows = [
        (one.name, cell(f"{one.n:,}") + cell(share(one.n / found.n)) + cell(f"{one.n_first:,}"))
        for one in found.reasons[:_MOST]
    ]
    left_out = len(found.reasons) - len(rows)
    more = f" Columns not shown: {left_out:,}." if left_out else ""
    note = (
        f"Of {people(found.n)} whom the program refused and who are not erased: columns that "
        f"lowered the score, at most four a person; {found.n_without:,} have none that did.{more}"
    )
    titles = ["People", "Share", "As the first reason"]
    return table("Reasons of refusals", note, heads(titles), rows, "Column")
