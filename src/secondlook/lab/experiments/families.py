"""Which methods belong together, so that many can be shown a few at a time."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["families"]

# Titles with the beginnings of names; the first that fits counts.
_FAMILIES = {
    "Certificates": ("certified", "plug-in"),
    "FAIR-CLF and references": ("fair-clf", "opt-"),
    "Frozen and greedy": ("frozen-", "greedy-", "epsilon-"),
    "Greedy with chance": ("random-", "thompson-"),
    "Outcomes made up": ("label-", "extrapolation-", "fuzzy-"),
    "Kilbertus 2020": ("kilbertus",),
    "Yang 2022, Bechavod 2019": ("yang", "bechavod"),
    "Wei 2021": ("wei-",),
    "PLOT and FairAll": ("plot", "fairall", "rateike"),
    "Algorithm 1": ("plain", "exploit-", "explore-", "both-", "no-exploration", "alpha-"),
}
_OTHERS = "Others"
_MOST = 8  # lines that can be told apart in one panel


def families(methods: Sequence[str]) -> dict[str, list[int]]:
    """Return places of methods by family, in the order of the methods.

    A large family is cut into several.

    Examples
    --------
    >>> families(["plain", "mine:make", "explore-fair@0.1"])
    {'Algorithm 1': [0, 2], 'Others': [1]}
    """
    found: dict[str, list[int]] = {}
    for i, name in enumerate(methods):
        fits = (title for title, starts in _FAMILIES.items() if name.startswith(starts))
        found.setdefault(next(fits, _OTHERS), []).append(i)
    return {
        f"{title} ({k // _MOST + 1})" if len(places) > _MOST else title: places[k : k + _MOST]
        for title, places in found.items()
        for k in range(0, len(places), _MOST)
    }
