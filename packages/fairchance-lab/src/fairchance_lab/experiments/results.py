"""Results of an experiment: head counts per method, repetition, round and group, in one file.

Rates, revenue and differences are all computed from these counts, so tables and figures can be
drawn again from the file. If policies were judged on the whole population, the file also holds
shares of it. The certificates of the first repetition are kept, too.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairchance.errors import InputError
from fairchance.extras import arrow
from fairchance.notebook import in_words
from fairchance.words import counted

__all__ = ["COUNTS", "KEYS", "SHARES", "Failure", "Results", "read_results", "write_results"]

KEYS = ("setting", "method", "repetition", "round", "group")
COUNTS = (
    "n_people",  # in the batch
    "n_good",
    "n_accepted",
    "n_accepted_good",
    "n_exploit_region",
    "n_explored",
    "n_explored_good",
    "n_certified",  # in a round with a certificate
    "n_next",  # in the next batch, on which f_t is evaluated; 0 if there is none
    "n_next_good",
    "n_next_accepted",
    "n_next_accepted_good",
    # Counted once a round, in the first group's row: the labelled rows that thresholds rest on, how
    # many of them the cap on weights touches, and how many equally weighted rows they are worth.
    "n_weighted",
    "n_capped",
    "n_effective",
    # In the rows of round 1: the history, and whom of it the past accepted.
    "n_past",
    "n_past_accepted",
    "n_past_accepted_good",
)
SHARES = (  # of the whole population, if policies are judged on it
    "p_people",  # in the group
    "p_good",
    "p_accepted",  # expected under the policy; NaN if a method has no probabilities
    "p_accepted_good",
)
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Failure:
    """A method that failed in a repetition.

    Attributes
    ----------
    setting, method, repetition
        The run that failed.
    seed
        Seed of the method.
    sentence
        The error's message.
    """

    setting: str
    method: str
    repetition: int
    seed: int
    sentence: str


@dataclass(frozen=True, repr=False)
class Results:
    """Counts of a whole experiment, with its settings.

    Attributes
    ----------
    columns
        A column per key and count; a row per (setting, method, repetition, round, group), in that
        order.
    about
        The experiment, the version, the data's source and fingerprint; ``settings`` (a label, α and
        options for each), the index ``main`` of the one that tables show first, and the methods
        that ran ``once``, at that setting, because what is varied does not change them.
    certificates
        Each ``CertifiedRound`` of the first repetition as plain data, with its setting and method;
        unknown and infinite values are None.
    failures
        Methods that failed in a repetition. All their counts of that repetition are 0, so their
        rates are unknown and left out of means. The same holds for methods that ran once, at the
        other settings.
    """

    columns: dict[str, NDArray[Any]]
    about: dict[str, Any]
    certificates: tuple[dict[str, Any], ...] = ()
    failures: tuple[Failure, ...] = ()

    def __repr__(self) -> str:
        _, methods, repetitions, rounds, _ = self.shape
        return f"Results({methods} methods, {repetitions} repetitions of {rounds} rounds)"

    def _repr_html_(self) -> str:
        # They import this module.
        from fairchance_lab.experiments import words  # noqa: PLC0415
        from fairchance_lab.experiments.verdict import find_verdict  # noqa: PLC0415

        verdict, failed = find_verdict(self), len(self.failures)
        other, money, rate = verdict.yardstick, words.money, words.rate
        return in_words(
            words.takeaway(verdict),
            words.loser(verdict),
            words.by_group(verdict),
            words.certificate(verdict),
            words.precision(verdict),
            f"{counted(failed, 'run')} failed: see results.failures." if failed else "",
            titles=[
                "method",
                f"earned a round, last {verdict.late_rounds}",
                *([] if other is None else [f"of {other.label}"]),
                "mistakes",
                "95 % interval",
            ],
            rows=[
                [
                    one.label,
                    money(one.earned.mean),
                    *([] if other is None else [rate(one.share.mean)]),
                    rate(one.mistakes.mean),
                    f"{rate(one.mistakes.low)} to {rate(one.mistakes.high)}",
                ]
                for one in verdict.standings
            ],
        )

    @cached_property
    def settings(self) -> tuple[str, ...]:
        """Labels of the settings that were run."""
        return _in_order(self.columns["setting"])

    @property
    def alphas(self) -> tuple[float, ...]:
        """The bound on the FDR in each setting."""
        return tuple(float(setting["alpha"]) for setting in self.about["settings"])

    @property
    def main(self) -> int:
        """Index of the setting that tables show first."""
        return int(self.about["main"])

    @property
    def varied(self) -> str | None:
        """Name of what differs between settings, for readers; None if there is only one."""
        name = next(iter(self.about["experiment"].get("vary") or ()), None)
        return "α" if name == "alpha" else name

    @property
    def values(self) -> tuple[Any, ...]:
        """The value in each setting of what differs between them; empty if nothing does."""
        name = next(iter(self.about["experiment"].get("vary") or ()), None)
        if name in (None, "alpha"):
            return self.alphas if name else ()
        return tuple(setting["options"][name] for setting in self.about["settings"])

    def methods_at(self, at: int) -> tuple[str, ...]:
        """Return the methods that ran at a setting."""
        once = () if at == self.main else self.about["once"]
        return tuple(name for name in self.methods if name not in once)

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Methods that ran, in the experiment's order."""
        return _in_order(self.columns["method"])

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """Groups."""
        return _in_order(self.columns["group"])

    @cached_property
    def shape(self) -> tuple[int, int, int, int, int]:
        """Number of settings, methods, repetitions, rounds and groups."""
        repetitions, rounds = (
            np.unique(self.columns[name]).size for name in ("repetition", "round")
        )
        return len(self.settings), len(self.methods), repetitions, rounds, len(self.groups)

    def count(self, name: str) -> Counts:
        """Return a count as an array with axes (setting, method, repetition, round, group)."""
        return self.columns[name].reshape(self.shape)

    @property
    def judged(self) -> bool:
        """Whether policies were judged on the whole population."""
        return SHARES[0] in self.columns

    def share(self, name: str) -> NDArray[np.float64]:
        """Return a share of the population, axes (setting, method, repetition, round, group)."""
        if not self.judged:
            raise InputError(
                "these results have no shares of the whole population; run the experiment with "
                "judged = true."
            )
        return self.columns[name].reshape(self.shape)

    def label(self, method: str) -> str:
        """Return a method's name for readers."""
        return str(self.about.get("labels", {}).get(method, method))

    def failed(self, method: str, at: int) -> tuple[Failure, ...]:
        """Return the failures of a method at the setting with this index."""
        label = self.settings[at]
        return tuple(f for f in self.failures if f.method == method and f.setting == label)

    def __len__(self) -> int:
        return int(self.columns["round"].size)


def _in_order(values: NDArray[Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(values.tolist()))


def write_results(results: Results, path: Path) -> None:
    """Write results to a parquet file, which appears complete or not at all."""
    names = (*KEYS, *COUNTS, *(SHARES if results.judged else ()))
    table = arrow().table({name: results.columns[name] for name in names})
    metadata = {"fairchance": json.dumps(results.about, sort_keys=True)}
    if results.certificates:
        metadata["certificates"] = json.dumps(results.certificates, allow_nan=False)
    if results.failures:
        metadata["failures"] = json.dumps([asdict(failure) for failure in results.failures])
    table = table.replace_schema_metadata(metadata)
    unfinished = path.with_name(path.name + ".part")
    arrow("parquet").write_table(table, unfinished, compression="zstd")
    unfinished.replace(path)


def read_results(path: Path) -> Results:
    """Read results from a parquet file, or from the folder of a complete run."""
    parquet = arrow("parquet")
    file = path / "results.parquet" if path.is_dir() else path
    if not file.is_file():
        if (path / "settings.json").is_file():
            raise InputError(f"the run in {path} is not complete; start it again to finish it.")
        raise InputError(
            f"there are no results at {path}; name the folder of a run, or its results.parquet."
        )
    try:
        table = parquet.read_table(file)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{file} cannot be read as a results file ({str(error).splitlines()[0]}); name a "
            f"file or folder of a run."
        ) from error
    metadata = table.schema.metadata or {}
    about = metadata.get(b"fairchance")
    missing = [name for name in (*KEYS, *COUNTS) if name not in table.column_names]
    if about is None or missing:
        raise InputError(
            f"{file} is not a results file: it lacks {', '.join(missing) or 'the settings'}; name "
            f"a file that `fairchance` wrote."
        )
    names = (*KEYS, *COUNTS, *(SHARES if SHARES[0] in table.column_names else ()))
    columns = {name: table[name].to_numpy() for name in names}
    failures = tuple(Failure(**fields) for fields in json.loads(metadata.get(b"failures", b"[]")))
    certificates = tuple(json.loads(metadata.get(b"certificates", b"[]")))
    return Results(columns, json.loads(about), certificates, failures)
