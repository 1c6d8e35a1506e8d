"""FairAll (Rateike et al. 2022) as a method: three phases, then rounds.

The history pre-trains the autoencoder on the features of all applicants (phase I) and warms it up
with the outcomes of the accepted ones; each round decides by the policy and then trains on that
round's people, the accepted with their outcomes and the rejected without.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from fairchance.errors import InputError, to_install
from fairchance.people.intake import Batch, History
from fairchance_lab.baselines.base import CODE, Baseline, Floats, Labelled, Sources, Unlabelled
from fairchance_lab.baselines.fairall.columns import Columns
from fairchance_lab.baselines.greedy import ALIGNED, check_share

__all__ = [
    "SCHEDULES",
    "FairAll",
    "Schedule",
    "Training",
    "as_schedule",
]


@dataclass(frozen=True)
class Schedule:
    """Epochs, minibatches and draws.

    Attributes
    ----------
    pretraining_epochs, pretraining_batch
        Phase I, over all applicants of the history without outcomes.
    warm_up_epochs
        Over the history with the outcomes of the accepted; the policy then gets as many.
    epochs
        Over a round's people once outcomes have come; the policy gets as many.
    parts
        Minibatches an epoch is cut into, in the warm-up and in rounds.
    reconstruction_draws
        Latent draws per assumed outcome for an applicant without a known outcome.
    kl_draws
        Draws per component of a mixture for its divergence from the prior.

    Examples
    --------
    >>> Schedule(pretraining_epochs=10).parts
    3
    """

    pretraining_epochs: int = 1200
    pretraining_batch: int = 128
    warm_up_epochs: int = 50
    epochs: int = 1
    parts: int = 3
    reconstruction_draws: int = 50
    kl_draws: int = 100

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name.endswith("epochs") else 1
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise InputError(
                    f"{field.name} of a schedule must be a whole number from {least} on, "
                    f"got {value!r}."
                )


SCHEDULES = {
    "published": Schedule(),
    "quick": Schedule(
        pretraining_epochs=150, epochs=5, reconstruction_draws=5, kl_draws=10, warm_up_epochs=50
    ),
}


def as_schedule(schedule: Any) -> Schedule:
    """Return a schedule by its name, or as it is.

    Examples
    --------
    >>> as_schedule("published").pretraining_epochs
    1200
    """
    if isinstance(schedule, Schedule):
        return schedule
    if isinstance(schedule, str) and schedule in SCHEDULES:
        return SCHEDULES[schedule]
    raise InputError(
        f"schedule must be one of {', '.join(SCHEDULES)}, or a Schedule, got {schedule!r}."
    )


_MOST_LATENT = 4  # beyond it, averaging over z by a rule takes too many points
_LEAST_PAST = 0.05  # of the past's probabilities, which are estimates


@dataclass(frozen=True)
class Training:
    """What one phase of training rested on, and whether the latent space still means anything.

    Attributes
    ----------
    round
        The last round decided before it; 0 for the history.
    n_labelled, n_unlabelled
        People with and without outcomes.
    clip_rate
        Share of those with outcomes whose weight was cut.
    kl
        Mean divergence of z from its prior in the last epoch; near 0 the encoder has collapsed and
        decisions no longer depend on features.
    """

    round: int
    n_labelled: int
    n_unlabelled: int
    clip_rate: float
    kl: float


@dataclass(eq=False, repr=False)
class FairAll(Baseline):
    """Accept by a policy on the latent vector of an autoencoder that learns from all applicants.

    The autoencoder explains features and outcomes by z given the group, so that z need not carry
    the group, and the policy sees z alone; how fair it is rests on how independent of the group z
    has become, and nothing enforces that. The rejected teach it their features. Decisions are
    random and the FDR is not controlled.

    As published, a decision draws an outcome from the classifier, then z from the encoder, then
    tosses a coin with σ(f(z)). Here the coin has the mean of σ(f(z)) over both draws, which gives
    the same decisions with the same chances, up to how finely z is averaged over (49 points an
    outcome, an error below 0.005), and the logged probability is exactly the coin's. Any number of
    groups.

    Parameters
    ----------
    cost
        c, the break-even probability of a good outcome, in (0, 1).
    schedule
        ``"published"``, ``"quick"`` (shorter pre-training, fewer draws, five epochs a round), or a
        ``Schedule``.
    kl_weight
        β, the weight of the divergence of z from its prior.
    classifier_weight
        Weight of the classifier's loss relative to the bounds.
    latent
        Dimension of z, from 1 to 4.
    learning_rate
        Adam's step length.
    clip
        Smallest probability by which an outcome of our own rounds is divided.
    columns
        Kinds of features, ``"real"``, ``"count"``, ``"binary"`` or ``"categorical"`` each; None
        means binary where a column has two values, else real.

    Attributes
    ----------
    trainings_
        A ``Training`` for the warm-up and for each time outcomes had come.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2))
    >>> group = np.where(rng.random(300) < 0.3, "B", "A")
    >>> repaid = (rng.random(300) < 1 / (1 + np.exp(-1 - 2 * X[:, 0]))).astype(int)
    >>> short = Schedule(0, 128, 20, 1, reconstruction_draws=2, kl_draws=4)
    >>> method = FairAll.setting("aligned", schedule=short, random_state=0)
    >>> method = method.fit(X, repaid, accepted=X[:, 1] > -0.5, sensitive_features=group)
    >>> batch = method.decide(X[:100], sensitive_features=group[:100])
    >>> bool(((batch.propensity > 0) & (batch.propensity < 1)).all())
    True
    >>> method = method.observe(batch.ids[batch.accepted], repaid[:100][batch.accepted])
    """

    cost: float = 0.5
    _: KW_ONLY
    schedule: str | Schedule = "published"
    kl_weight: float = 0.7
    classifier_weight: float = 5.0
    latent: int = 2
    learning_rate: float = 1e-3
    clip: float = 0.01
    columns: Sequence[str] | None = None

    reads_group: ClassVar[bool] = True
    assumption: ClassVar[str] = (
        "The history accepted people by their features and group alone, in a way a logistic model "
        "can tell."
    )
    settings: ClassVar[dict[str, dict[str, Any]]] = {
        "published": {"cost": 0.5},
        "aligned": {"cost": ALIGNED},
    }
    sources: ClassVar[Sources] = {
        "published": {
            CODE: (
                "cost",
                "schedule",
                "kl_weight",
                "classifier_weight",
                "latent",
                "learning_rate",
            )
        }
    }
    group_as_feature: ClassVar[bool] = False  # type: ignore[misc]  # the networks get the group in columns of its own

    def _start(self, history: History) -> None:  # noqa: ARG002 - the ledger has it, in order of ids
        self._check_parameters()
        model, training = (_deep(name) for name in ("model", "training"))
        applicants, accepted, rejected = self._all_applicants(), self._labelled(), self._rejected()
        self._schedule = schedule = as_schedule(self.schedule)
        self._columns = Columns.of(applicants.X, applicants.group, self.columns)
        self._past = _past_policy(
            self._inputs(accepted.X, accepted.group), self._inputs(rejected.X, rejected.group)
        )
        plan = model.TrainingPlan(
            self._columns.layout,
            self.latent,
            float(self.cost),
            float(self.kl_weight),
            float(self.classifier_weight),
            schedule.reconstruction_draws,
            schedule.kl_draws,
            float(self.learning_rate),
        )
        rng = self._rng()
        group_width = self._group_columns(applicants.group).shape[1]
        networks = training.FairAllNetworks.initial(
            plan, model.Sizes(self.latent, group_width), rng
        )
        self._networks = networks.pretrained(
            self._people_without(applicants.X, applicants.group),
            schedule.pretraining_epochs,
            schedule.pretraining_batch,
            rng,
        )
        self.trainings_: list[Training] = []
        self._taught = np.zeros((1, 2), np.int64)
        self._train(accepted, rejected, schedule.warm_up_epochs, rng)

    def _learn(self) -> None:
        labelled, rejected = self._labelled(), self._rejected()
        counts = self._outcome_counts(labelled)
        before = np.zeros_like(counts)
        before[: len(self._taught)] = self._taught
        fresh = np.any(counts != before, axis=1)
        fresh[len(self._taught) :] = True  # rounds since the last training, outcomes or not
        self._train(
            labelled.of(fresh[labelled.round]),
            _of(rejected, fresh[rejected.round]),
            self._schedule.epochs,
            self._rng(),
        )

    def _probabilities(self, people: Batch) -> Floats:
        x = self._columns.read(np.asarray(people.X, dtype=np.float64))
        p: Floats = self._networks.acceptance(x, self._group_columns(people.group))
        return p

    def _train(
        self, labelled: Labelled, rejected: Unlabelled, epochs: int, rng: np.random.Generator
    ) -> None:
        weight, clip_rate = self._weights(labelled)
        known = _deep("training").FairAllPeople(
            self._columns.read(labelled.X),
            self._group_columns(labelled.group),
            labelled.outcome.astype(np.float64),
            weight,
        )
        unknown = self._people_without(rejected.X, rejected.group)
        self._networks = self._networks.trained(known, unknown, epochs, self._schedule.parts, rng)
        self._taught = self._outcome_counts(self._labelled())
        self.trainings_.append(
            Training(self._round, len(labelled), len(rejected), clip_rate, self._networks.kl)
        )

    def _weights(self, rows: Labelled) -> tuple[Floats, float]:
        """Return 1/π: the past's as a model tells it, our own as logged; and how many were cut."""
        p = np.where(rows.round > 0, rows.propensity, 1.0)
        past = np.flatnonzero(rows.round == 0)
        if past.size and self._past is not None:
            estimate = self._past.predict_proba(self._inputs(rows.X[past], rows.group[past]))[:, 1]
            p[past] = np.maximum(estimate, _LEAST_PAST)
        cut = (rows.round > 0) & (p < self.clip)
        return 1.0 / np.maximum(p, np.where(rows.round > 0, self.clip, 0.0)), float(cut.mean())

    def _outcome_counts(self, labelled: Labelled) -> NDArray[np.int64]:
        """Return how many outcomes of each round are known and how many of them are good."""
        size = self._round + 1
        known = np.bincount(labelled.round, minlength=size)
        good = np.bincount(labelled.round, labelled.outcome, minlength=size)
        return np.stack([known, good.astype(np.int64)], axis=1)

    def _inputs(self, X: Floats, group: NDArray[np.intp]) -> Floats:
        return np.hstack([self._columns.read(X), self._group_columns(group)])

    def _people_without(self, X: Floats, group: NDArray[np.intp]) -> Any:
        people = _deep("training").FairAllPeople
        return people.without_outcomes(self._columns.read(X), self._group_columns(group))

    def _group_columns(self, group: NDArray[np.intp]) -> Floats:
        """Return −1 and 1 for two groups, an indicator each for more, nothing for one."""
        if self._n_groups == 1:
            return np.empty((group.size, 0))
        if self._n_groups == 2:
            return np.where(group == 1, 1.0, -1.0)[:, None]
        return np.asarray(group[:, None] == np.arange(self._n_groups), dtype=np.float64)

    def _check_parameters(self) -> None:
        check_share("cost", self.cost)
        check_share("clip", self.clip)
        for name in ("kl_weight", "classifier_weight", "learning_rate"):
            value = getattr(self, name)
            if not (isinstance(value, int | float | np.number) and 0 < value < np.inf):
                raise InputError(f"{name} must be a finite number above 0, got {value!r}.")
        whole = isinstance(self.latent, int | np.integer) and not isinstance(self.latent, bool)
        if not whole or not 1 <= self.latent <= _MOST_LATENT:
            raise InputError(
                f"latent must be a whole number from 1 to {_MOST_LATENT}, got {self.latent!r}."
            )


def _of(people: Unlabelled, rows: NDArray[np.bool_]) -> Unlabelled:
    return Unlabelled(people.X[rows], people.group[rows], people.round[rows])


def _past_policy(accepted: Floats, rejected: Floats) -> LogisticRegression | None:
    """Return a model of acceptance in the past; None if all were accepted."""
    if len(rejected) == 0:
        return None
    taken = np.repeat([1, 0], [len(accepted), len(rejected)])
    return LogisticRegression(max_iter=1000).fit(np.vstack([accepted, rejected]), taken)


def _deep(name: str) -> Any:
    """Return a module of this package that needs jax, imported when it is first needed."""
    try:
        return importlib.import_module(f"fairchance_lab.baselines.fairall.{name}")
    except ImportError as error:
        raise InputError(
            f"FairAll needs jax and optax, which are not installed; "
            f"{to_install('deep', 'fairchance-lab')} installs them."
        ) from error
