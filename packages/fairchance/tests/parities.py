"""Every constraint of the fairness family, with its rates written out once more."""

from __future__ import annotations

import numpy as np

from fairchance.core import fairness as f


def _share(part, whole):
    return np.divide(part, whole, out=np.full(np.shape(whole), np.nan), where=whole > 1e-14)


def _selection(a, y, w):
    return _share(a @ w, np.sum(w) + 0 * (a @ w))


def _true_positive(a, y, w):
    return _selection(a[..., y == 1], y[y == 1], w[y == 1])


def _false_positive(a, y, w):
    return _selection(a[..., y == 0], y[y == 0], w[y == 0])


def _false_discovery(a, y, w):
    return _share(a @ (w * (y == 0)), a @ w)


def _false_omission(a, y, w):
    return _share((1 - a) @ (w * (y == 1)), (1 - a) @ w)


FAMILY = {
    f.SelectionRateParity: [_selection],
    f.TruePositiveRateParity: [_true_positive],
    f.FalsePositiveRateParity: [_false_positive],
    f.EqualizedOdds: [_true_positive, _false_positive],
    f.FalseDiscoveryRateParity: [_false_discovery],
    f.FalseOmissionRateParity: [_false_omission],
}


def rates(parity, accepted, outcome, weight):
    """Return the rates of one group; ``accepted`` may have leading axes for many decisions."""
    kind = parity if isinstance(parity, type) else type(parity)
    a, y, w = np.asarray(accepted, float), np.asarray(outcome), np.asarray(weight, float)
    return [rate(a, y, w) for rate in FAMILY[kind]]


def worst(parity, of_groups):
    """Return the excess over the bound and the disparity, from ``rates`` of each group."""
    excess, disparity = -np.inf, 0.0
    for one in zip(*of_groups, strict=True):
        high, low = np.fmax.reduce(one), np.fmin.reduce(one)
        gap = high - low
        if parity.ratio is None:
            over, found = gap - parity.difference, gap
        else:
            over = parity.ratio * high - low
            found = np.divide(gap, high, out=np.zeros(np.shape(gap)), where=high > 0)
        excess = np.fmax(excess, over)
        disparity = np.fmax(disparity, found)
    return excess, disparity


def random_parity(rng):
    """Return a constraint with a difference or a ratio by chance."""
    kind = list(FAMILY)[rng.integers(len(FAMILY))]
    if rng.random() < 0.5:
        return kind(float(rng.choice([0.0, 0.05, 0.2, 0.5])))
    return kind(ratio=float(rng.choice([0.5, 0.8, 0.95, 1.0])))
