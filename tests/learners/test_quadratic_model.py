"""A quadratic model whose downward directions are turned round."""

from __future__ import annotations

import numpy as np

from secondlook.learners.quadratic_model import QuadraticModel


def test_directions_that_curve_down_are_turned_round():
    # Two directions of the metric, one of which curves down by 2 and the other up by 5.
    root = np.array([[2.0, 0.0], [1.0, 1.0]])
    metric, curves = root @ root.T, root @ np.diag([-2.0, 5.0]) @ root.T
    model = QuadraticModel(curves)
    assert not model.definite
    turned = model.reflected(metric)
    assert turned.definite
    np.testing.assert_allclose(turned.matrix, root @ np.diag([2.0, 5.0]) @ root.T, rtol=1e-12)
    endless = QuadraticModel(curves * np.nan)
    assert endless.reflected(metric) is endless
