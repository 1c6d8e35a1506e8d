"""Steps with priced constraints: a quadratic program in a box."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from secondlook.learners.box_qp import PricedStep, box_qp


class TestBoxQp:
    @pytest.mark.parametrize("seed", range(20))
    def test_optimality_conditions(self, seed):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(5, int(rng.integers(2, 9))))
        M, q = rows @ rows.T, 3 * rng.normal(size=5)
        solution = box_qp(M, q, 2.0, rng.random(5) < 0.5)
        slope = q - M @ solution
        assert np.all((solution >= 0) & (solution <= 2.0 + 1e-12))
        assert np.all(slope[solution < 2.0 - 1e-9] <= 1e-8)
        assert np.all(slope[solution > 1e-9] >= -1e-8)

    @pytest.mark.parametrize("seed", range(20))
    def test_a_guess_changes_nothing(self, seed):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(int(rng.integers(1, 4)), 4))
        M, q = rows @ rows.T, 3 * rng.normal(size=len(rows))
        everything = np.ones(len(rows), dtype=bool)
        np.testing.assert_allclose(
            box_qp(M, q, 2.0, everything), box_qp(M, q, 2.0), rtol=1e-9, atol=1e-9
        )

    @pytest.mark.parametrize(("q", "expected"), [(-1.0, 0.0), (3.0, 1.5), (9.0, 2.0)])
    def test_one_alone(self, q, expected):
        assert box_qp(np.array([[2.0]]), np.array([q]), 2.0).tolist() == [expected]

    @pytest.mark.parametrize("price", [0.1, 1.0, 50.0])
    @pytest.mark.parametrize("seed", range(10))
    def test_a_priced_step_is_the_best_of_its_model(self, seed, price):
        """Against a second solver, with the excess over each constraint as a variable."""
        rng = np.random.default_rng([22, seed])
        d, n = 4, int(rng.integers(1, 6))
        root, gradient = rng.normal(size=(d, d)), rng.normal(size=d)
        matrix, jacobian = root @ root.T + np.eye(d), rng.normal(size=(n, d))
        offset = rng.normal(size=n)
        both = np.linalg.solve(matrix, np.vstack((gradient, jacobian)).T)
        program = PricedStep(jacobian, offset, -both[:, 0], both[:, 1:])
        step, multipliers = program.solve(price, rng.random(n) < 0.5)

        def worth(p):
            return p @ matrix @ p / 2 + gradient @ p

        found = worth(step) + price * np.maximum(offset + jacobian @ step, 0).sum()
        best = minimize(
            lambda v: worth(v[:d]) + price * v[d:].sum(),
            np.concatenate((np.zeros(d), np.maximum(offset, 0))),
            method="SLSQP",
            bounds=[(None, None)] * d + [(0, None)] * n,
            constraints={"type": "ineq", "fun": lambda v: v[d:] - offset - jacobian @ v[:d]},
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert found == pytest.approx(best.fun, rel=1e-6, abs=1e-6)
        assert np.all((multipliers >= 0) & (multipliers <= price * (1 + 1e-9)))
        # Where it ends, the model is level but for what the constraints ask for.
        np.testing.assert_allclose(matrix @ step + gradient + multipliers @ jacobian, 0, atol=1e-9)

    def test_opposed_and_empty_rows(self):
        rows = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]])
        solution = box_qp(rows @ rows.T, np.array([2.0, -2.0, 1.0]), 10.0)
        np.testing.assert_allclose(solution, [2.0, 0.0, 0.0], atol=1e-9)
