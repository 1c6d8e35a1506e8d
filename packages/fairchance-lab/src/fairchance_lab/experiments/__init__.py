"""The paper's experiments and others: specifications, runs, tables, figures, reports."""

from fairchance.errors import InputError

__all__ = ["PAPER_EXPERIMENTS", "SHORT_WORLD", "check_paper_experiment"]

# Here and not in ``paper``, so that the command line can name them without slow imports.
PAPER_EXPERIMENTS = ("german", "adult-race", "adult-gender")
# For messages: a file of a world, with a name from ``fairchance datasets``.
SHORT_WORLD = 'the lines methods = ["plain", "certified"] and world.data = "taiwan"'


def check_paper_experiment(name: str) -> None:
    """Raise unless the paper has an experiment of this name.

    Examples
    --------
    >>> check_paper_experiment("german")
    >>> check_paper_experiment("germany")
    Traceback (most recent call last):
    fairchance.errors.InputError: there is no experiment 'germany'; known are german, adult-race, \
adult-gender; for other data sets, simulate and compare take a file with the lines methods = \
["plain", "certified"] and world.data = "taiwan", for example.
    """
    if name not in PAPER_EXPERIMENTS:
        known = ", ".join(PAPER_EXPERIMENTS)
        raise InputError(
            f"there is no experiment {name!r}; known are {known}; for other data sets, simulate "
            f"and compare take a file with {SHORT_WORLD}, for example."
        )
