"""The names of the paper's experiments, for who asks for one before anything slow is imported.

``paper.EXPERIMENTS`` says what they are; a test compares the two.
"""

from __future__ import annotations

from secondlook.errors import InputError

__all__ = ["PAPER_EXPERIMENTS", "check_experiment"]

PAPER_EXPERIMENTS = ("german", "adult-race", "adult-gender")


def check_experiment(name: str) -> None:
    """Raise unless there is an experiment of that name.

    Examples
    --------
    >>> check_experiment("german")
    >>> check_experiment("germany")
    Traceback (most recent call last):
    secondlook.errors.InputError: there is no experiment 'germany'; known are german, adult-race, \
adult-gender.
    """
    if name not in PAPER_EXPERIMENTS:
        known = ", ".join(PAPER_EXPERIMENTS)
        raise InputError(f"there is no experiment {name!r}; known are {known}.")
