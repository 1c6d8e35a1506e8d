"""A positive definite second-order model of a function, and steps to its minimum."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf, dpotrs

from secondlook.learners.box_qp import Array, PricedStep

__all__ = ["QuadraticModel"]

# Directions that hardly curve are taken to curve by this part of the metric once one curves down.
FLATTEST = 0.3


class QuadraticModel:
    """Factorised positive definite second-order model, reusable while it predicts well."""

    def __init__(self, matrix: Array, bend: Array | None = None) -> None:
        self.matrix, self.bend = matrix, bend
        self.factor, failed = dpotrf(self.matrix, lower=1)
        self.definite = failed == 0

    def bent(self, bend: Array, jacobian: Array) -> QuadraticModel:
        """Return the same with curvature added across some constraints."""
        return QuadraticModel(self.matrix + (jacobian.T * bend) @ jacobian, bend)

    def reflected(self, metric: Array) -> QuadraticModel:
        """Return the same with directions that curve down, in a metric, curving up as much.

        So a step goes down along them too, and along all others it is as long as before, which it
        is not with damping (Dauphin et al., *Identifying and attacking the saddle point problem in
        high-dimensional non-convex optimization*, 2014). Itself where there is no such thing.
        """
        if not np.isfinite(self.matrix).all():
            return self
        try:
            values, vectors = eigh(self.matrix, metric, check_finite=False)
        except np.linalg.LinAlgError:
            return self
        across = metric @ vectors
        return QuadraticModel((across * np.maximum(np.abs(values), FLATTEST)) @ across.T, self.bend)

    def free_step(self, gradient: Array) -> Array:
        """Return the step that heeds no constraint."""
        return np.asarray(-dpotrs(self.factor, gradient, lower=1)[0])

    def program(self, gradient: Array, jacobian: Array, offset: Array) -> PricedStep:
        """Return the quadratic program of a step under linearised constraints ``offset + J p``."""
        if self.bend is not None:
            gradient = gradient + (self.bend * offset) @ jacobian
        both, _ = dpotrs(self.factor, np.concatenate((gradient[None], jacobian)).T, lower=1)
        return PricedStep(jacobian, offset, -both[:, 0], both[:, 1:])
