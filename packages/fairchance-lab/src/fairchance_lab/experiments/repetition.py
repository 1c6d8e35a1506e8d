"""Run one repetition: build a world, run every method in it, count every round."""

from __future__ import annotations

import sys
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from fairchance.core.decisions import Round
from fairchance.errors import InputError, LearningWarning
from fairchance.simulate.histories import PastCutoff
from fairchance.simulate.people import People, Table, WholePopulation
from fairchance.simulate.populations import Population
from fairchance.simulate.run import Method, RoundResult, run
from fairchance.simulate.worlds import World
from fairchance_lab.experiments.certificates import certificate_records
from fairchance_lab.experiments.comparison import judge
from fairchance_lab.experiments.methods import REFERENCES, Setup, build, find_main, find_once
from fairchance_lab.experiments.results import COUNTS, SHARES, Failure, Results
from fairchance_lab.experiments.spec import Experiment, RunSetting
from fairchance_lab.paper.released.classifier import build_released, is_released
from fairchance_lab.paper.released.setup import released_setup, released_world

__all__ = ["Segments", "check_world", "run_and_count", "run_repetition", "seeds_of", "setup_of"]

Columns = dict[str, NDArray[Any]]


def run_repetition(experiment: Experiment, source: Table | Population, number: int) -> Results:
    """Run one repetition; its rows depend only on the experiment and the number."""
    # Two threads on a busy machine are slower than one. Warnings about single rounds are ignored:
    # the counts show those in which no one can be accepted, and a fit that stopped early without
    # meeting its constraints has a LearningWarning of its own.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        switches = frozenset(experiment.switches)
        spec, source = released_world(experiment.world, source, switches, experiment.seed)
        world_seed, method_seed = seeds_of(experiment, number)
        world = spec.build(source, world_seed)
        segments = Segments.of(world, experiment.segments)
        population = world.population() if experiment.judged else None
        parts: list[Columns] = []
        records: list[dict[str, Any]] = []
        failures: list[Failure] = []
        variants = experiment.variants
        once, main = find_once(experiment), find_main(experiment)
        for at, setting in enumerate(experiment.settings):
            shared: dict[str, Any] = {}
            setup = setup_of(world, setting, source, method_seed, switches)
            for name in experiment.methods:
                _check_groups(name, world, setup)
                columns = _empty_columns(world.n_rounds * segments.names.size, experiment.judged)
                label = setting.label
                if name not in once or at == main:
                    try:
                        if switches and is_released(name, variants):
                            method = build_released(name, setup, switches, shared, variants)
                        else:
                            method = build(name, world, setup, variants)
                        columns = run_and_count(method, world, segments, population)
                        if number == 0:
                            records += certificate_records(method, label, name)
                    except Exception as error:
                        # A method that fails must not stop the others.
                        message = _failure_message(error, name)
                        failures.append(Failure(label, name, number, method_seed, message))
                parts.append(_keys(columns, label, name, number, segments.names) | columns)
        together = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
        return Results(together, {}, tuple(records), tuple(failures))


def seeds_of(experiment: Experiment, number: int) -> tuple[int, int]:
    """Return the seeds of a repetition's world and of its methods."""
    world, method = np.random.SeedSequence([experiment.seed, number]).generate_state(2)
    return int(world), int(method)


def _failure_message(error: Exception, name: str) -> str:
    """Return an error's message; for unexpected errors, with the line that raised it.

    For a user's own method that is the innermost line of the user's file, if there is any.
    """
    if isinstance(error, InputError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    module, _, function = name.partition(":")
    own = getattr(sys.modules.get(module), "__file__", None) if function else None
    frame = next((f for f in reversed(frames) if own and _same_file(f, own)), frames[-1])
    file = frame.filename if function else Path(frame.filename).name
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return f"{message} (at {file}, line {frame.lineno})."


def _same_file(frame: traceback.FrameSummary, file: str) -> bool:
    return Path(frame.filename).resolve() == Path(file).resolve()


def _empty_columns(n: int, judged: bool) -> Columns:
    """Return the counts of a repetition that failed or was not run, which are all 0."""
    columns: Columns = {key: np.zeros(n, np.int64) for key in COUNTS}
    return columns | ({key: np.full(n, np.nan) for key in SHARES} if judged else {})


def check_world(experiment: Experiment, source: Table | Population) -> None:
    """Raise if the world of an experiment cannot be built."""
    switches = frozenset(experiment.switches)
    spec, source = released_world(experiment.world, source, switches, experiment.seed)
    world = spec.build(source, 0)
    if experiment.judged:
        world.check_has_population()
    world.history()
    names = Segments.of(world, experiment.segments).names.tolist()
    if experiment.focus and experiment.focus not in names:
        raise InputError(f"focus must be one of {', '.join(names)}, got {experiment.focus!r}.")


def setup_of(
    world: World,
    setting: RunSetting,
    source: Table | Population,
    seed: int,
    switches: frozenset[str] = frozenset(),
) -> Setup:
    """Return what methods may know about a world, with the goal and the options of a setting."""
    in_features = isinstance(source, Table) and source.group_feature is not None
    setup = Setup(
        world.history(),
        setting.goal,
        not in_features,
        seed,
        n_rounds=world.n_rounds,
        options=setting.options,
    )
    return released_setup(setup, world, switches)


def _check_groups(name: str, world: World, setup: Setup) -> None:
    """Raise if a group of later applicants is absent from the past."""
    absent = sorted(set(world.stream.groups) - set(setup.past.people.group.tolist()))
    if absent and name not in REFERENCES:
        raise InputError(
            f"S_0 has no people of group {absent[0]!r}, which {name} needs; make it larger."
        )


@dataclass(frozen=True)
class Segments:
    """Segments of people to count: groups, or the two sides of the past's cut-off."""

    names: NDArray[np.str_]
    cutoff: PastCutoff | None = None
    feature: int = 0
    reference: NDArray[np.float64] | None = None

    @staticmethod
    def of(world: World, by: str) -> Segments:
        """Return the segments of a world."""
        if by == "past":
            rule = world.past_cutoff()
            feature = world.stream.features.index(rule.feature)
            reference = world.history().people.X[:, feature]
            return Segments(np.array(["let in", "shut out"]), rule, feature, reference)
        return Segments(np.array(world.stream.groups))

    def codes(self, people: People) -> NDArray[np.intp]:
        """Return the segment of each person."""
        if self.cutoff is None or self.reference is None:
            return np.searchsorted(self.names, people.group)
        excluded = self.cutoff.is_excluded(people.X[:, self.feature], self.reference)
        return excluded.astype(np.intp)

    def count(self, columns: list[NDArray[np.bool_]], people: People) -> NDArray[np.int64]:
        """Return the number of people of each segment in each column."""
        code = self.codes(people)
        counted = [np.bincount(code[column], minlength=self.names.size) for column in columns]
        return np.array(counted, dtype=np.int64).T


def run_and_count(
    method: Method, world: World, segments: Segments, population: WholePopulation | None = None
) -> Columns:
    """Run a method and return its counts, and its shares of the population, as columns."""
    counts, shares = [], []
    codes = None if population is None else segments.codes(population.people)
    past = _past_counts(world, segments)
    for result in run(method, world):
        weights = np.zeros((segments.names.size, 3), np.int64)
        weights[0] = _weight_counts(method)
        counts.append(np.hstack([_counts(result, method, segments), weights, past]))
        past = np.zeros_like(past)
        if population is not None and codes is not None:
            shares.append(judge(method, population, codes, segments.names.size))
    table = np.array(counts).reshape(-1, len(COUNTS))
    columns: Columns = {key: table[:, i] for i, key in enumerate(COUNTS)}
    if population is not None:
        judged = np.array(shares).reshape(-1, len(SHARES))
        columns |= {key: judged[:, i] for i, key in enumerate(SHARES)}
    return columns


def _past_counts(world: World, segments: Segments) -> NDArray[np.int64]:
    past = world.history()
    good = past.outcomes == 1  # NaN for the rejected
    columns = [np.ones(len(past.accepted), bool), past.accepted, good]
    return segments.count(columns, past.people)


def _weight_counts(method: Method) -> tuple[int, int, int]:
    """Return what the weights of the last round's thresholds were, for Algorithm 1."""
    record = next(reversed(getattr(method, "rounds_", ())), None)
    if not isinstance(record, Round) or not (record.thresholds and record.n_outcomes):
        return 0, 0, 0
    n_capped = round(record.capped_share * record.n_outcomes)
    return record.n_outcomes, n_capped, round(record.effective_sample_size)


def _counts(result: RoundResult, method: Method, segments: Segments) -> NDArray[np.int64]:
    decided, now = result.decided, result.applicants
    good = now.outcome == 1
    columns = [
        np.ones(len(now), bool),
        good,
        decided.accepted,
        decided.accepted & good,
        decided.exploit,
        decided.explored,
        decided.explored & good,
        np.full(len(now), decided.certified),
    ]
    counts = segments.count(columns, now.people)
    accepts = getattr(method, "accepts", None)
    if result.upcoming is None or accepts is None:
        return np.hstack([counts, np.zeros((segments.names.size, 4), np.int64)])
    people, good = result.upcoming.people, result.upcoming.outcome == 1
    accepted = accepts(people.X, sensitive_features=people.group)
    columns = [np.ones(len(people), bool), good, accepted, accepted & good]
    return np.hstack([counts, segments.count(columns, people)])


def _keys(
    columns: Columns, setting: str, name: str, number: int, groups: NDArray[np.str_]
) -> Columns:
    n = columns[COUNTS[0]].size
    n_rounds = n // groups.size
    return {
        "setting": np.full(n, setting, dtype=object),
        "method": np.full(n, name, dtype=object),
        "repetition": np.full(n, number, dtype=np.int64),
        "round": np.repeat(np.arange(1, n_rounds + 1), groups.size),
        "group": np.tile(groups.astype(object), n_rounds),
    }
