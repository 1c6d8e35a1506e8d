"""Recorded reasons that are not those of a round are found."""

from __future__ import annotations

import numpy as np

from ledger_worlds import algorithm_1
from refused_people import lived
from secondlook.people.likelihoods import LinearLikelihood
from secondlook.people.reasons import (
    Scored,
    first_misfit,
    reasons_for,
)
from secondlook.people.reference import Reference


def test_whatever_is_not_the_reasons_of_a_round_is_found():
    classifier, X, group, decided, reference = lived(algorithm_1())
    told = reasons_for(classifier, X, decided.accepted, reference, sensitive_features=group)

    def misfit(row=None, reasons=None):
        recorded = list(told)
        if row is not None:
            recorded[row] = reasons
        return first_misfit(
            classifier, X, decided.accepted, reference, recorded, sensitive_features=group
        )

    assert misfit() is None
    row = next(at for at, one in enumerate(told) if one is not None and len(one) == 12)
    items = np.frombuffer(told[row], np.dtype([("c", "<u2"), ("v", "<f4")]))
    assert items["v"][0] < items["v"][1] - 0.01

    def but(**columns):
        other = items.copy()
        for name, values in columns.items():
            other[name] = values
        return other.tobytes()

    unnamed = next(c for c in range(X.shape[1]) if c not in items["c"])
    third = np.append(items, np.array([(unnamed, -0.5)], items.dtype)).tobytes()
    for reasons in (
        None,
        b"",
        told[row][:6],
        told[row][6:],
        told[row][6:] + told[row][:6],
        told[row][:-1],
        told[row] * 2,
        told[row] * 3,
        third,
        but(v=items["v"] * 1.01),
        but(v=-items["v"]),
        but(c=items["c"][::-1]),
        but(c=[items["c"][0], unnamed]),
        but(c=[items["c"][0], 60_000]),
    ):
        assert misfit(row, reasons) == row
    assert misfit(row, but(v=items["v"] * (1 + 1e-6))) is None
    accepted = int(np.flatnonzero(decided.accepted)[0])
    assert misfit(accepted, b"") == accepted


def test_equals_may_stand_in_each_others_place():
    class Weighing:
        def scored_by(self, X, *, sensitive_features=None):
            slopes = np.array([1.0, 1.0 + 1e-9, 0.5, 2.0, 2.0, 0.5 + 1e-9])
            return Scored(LinearLikelihood(slopes, 0.0), X, np.zeros(len(X), np.intp))

    reference = Reference(tuple("abcdef"), (0.0,) * 6)
    X, nobody = -np.ones((1, 6)), np.array([False])
    dtype = np.dtype([("c", "<u2"), ("v", "<f4")])
    for columns, fits in (
        ([3, 4, 1, 0], True),
        ([4, 3, 0, 1], True),
        ([3, 4, 1, 2], False),
        ([3, 1, 4, 0], False),
        ([3, 4, 1], False),
    ):
        values = [(c, (-1.0, -1.0, -0.5, -2.0, -2.0, -0.5)[c]) for c in columns]
        told = [np.array(values, dtype).tobytes()]
        assert (first_misfit(Weighing(), X, nobody, reference, told) is None) == fits
