"""How long FairAll trains, and with how many draws."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from secondlook.errors import InputError

__all__ = ["SCHEDULES", "Schedule", "as_schedule"]


@dataclass(frozen=True)
class Schedule:
    """Epochs, minibatches and draws.

    Attributes
    ----------
    pretraining_epochs, pretraining_batch
        Phase I, over everybody of the history without outcomes.
    warm_up_epochs
        Over the history with the outcomes of the accepted; the policy then gets as many.
    epochs
        Over a round's people once outcomes have come; the policy gets as many.
    parts
        Minibatches an epoch is cut into, in the warm-up and in rounds.
    reconstruction_draws
        Latent draws per assumed outcome for somebody whose outcome is not known.
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
