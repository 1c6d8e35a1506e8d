"""Random lives of a program on a ledger, of any classifier.

Hypothesis plays random lives of a program against a small model: decide with and without the
lender's own decisions, change the ramp, pause and resume, observe in parts, correct, withdraw, not
take the loan, override and undo, hold and release, erase, snapshot, reopen, and, if the classifier
can, open a round, decide in it in pieces, import what its policy decided elsewhere, in time or too
late, and close it; each call has a name and is repeated at any later time, which changes nothing.
After every step a copy of the ledger decides another batch and verifies, and all exceptions are an
``InputError``.
"""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fairchance.errors import InputError, LearningWarning, PausedError
from fairchance.ledger import Program, verify

N_HISTORY, N_BATCH = 150, 24


@dataclass
class Applicant:
    """What the model knows about one application."""

    accepted: bool
    history: bool = False
    outcome: str | None = None  # a state of the ledger
    round: int = 0
    overridden: bool = False
    once_overridden: bool = False
    held: bool = False
    erased: bool = False

    @property
    def pending(self) -> bool:
        return self.accepted and not self.history and self.outcome is None and not self.erased


def draw_people(rng, n, few_values):
    """Return features and true outcomes."""
    x = rng.integers(0, 4, size=(n, 2)).astype(float)
    if not few_values:
        x += rng.normal(scale=0.3, size=x.shape)
    good = rng.random(n) < 1 / (1 + np.exp(1.0 - 1.2 * x[:, 0]))
    return pd.DataFrame(x, columns=["income", "age"]), good.astype(int)


def by_lender(X):
    """Return the lender's own decisions, and who is barred."""
    incumbent = X["income"].to_numpy() > 1.5
    return {"incumbent": incumbent, "barred": ~incumbent & (X["age"].to_numpy() > 2.5)}


class ProgramMachine(RuleBasedStateMachine):
    """Random operations on one program, checked against a dictionary of applicants."""

    make: Callable[[], Any]  # the classifier
    few_values = False  # of features, as cells need them
    takes_lender = True  # whether the classifier knows the lender's own decisions
    opens = False  # whether it opens rounds

    @initialize(seed=st.integers(0, 3))
    def create(self, seed):
        self.folder = TemporaryDirectory()
        self.url = f"sqlite:///{self.folder.name}/ledger.db"
        self.rng = np.random.default_rng(seed)
        X, good = draw_people(self.rng, N_HISTORY, self.few_values)
        accepted = X["income"].to_numpy() > 1
        self.program = Program.create(
            self.url,
            type(self).make(),
            X,
            good,
            accepted=accepted,
            ids=np.arange(N_HISTORY),
            about={"not_taken_within": "1 round"},
        )
        self.ramp, self.paused, self.policies = 1.0, False, []
        self.next_id, self.requests = N_HISTORY, []
        self.applicants = {
            i: Applicant(bool(taken), history=True) for i, taken in enumerate(accepted)
        }

    def teardown(self):
        if hasattr(self, "folder"):
            self.program.ledger.engine.dispose()
            self.folder.cleanup()

    def choose(self, data, wanted, at_most=8):
        """Return some ids of applicants for which ``wanted`` holds."""
        ids = [i for i, applicant in self.applicants.items() if wanted(applicant)]
        if not ids:
            return []
        # Indices instead of ids keep hypothesis' choices small, and so its shrinking quick.
        places = st.lists(st.integers(0, len(ids) - 1), max_size=at_most, unique=True)
        return [ids[place] for place in data.draw(places)]

    def request(self, method, *arguments, **options):
        """Call a method of the program under a new name."""
        call = method, arguments, options | {"request": f"r{len(self.requests)}"}
        self.requests.append(call)
        return self.repeat_call(call)

    def repeat_call(self, call):
        method, arguments, options = call
        # Correcting an outcome that was tested begins the tests again, with a warning.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LearningWarning)
            return getattr(self.program, method)(*arguments, **options)

    def any(self, wanted):
        return any(wanted(applicant) for applicant in getattr(self, "applicants", {}).values())

    @property
    def n_rounds(self):
        """The number of closed rounds."""
        with self.program.reading() as view:
            return len(list(view.reader.entries(kind="batch")))

    @property
    def opened(self):
        """What the entry says that opened the round; None if none is open."""
        with self.program.reading() as view:
            entry = view.reader.open_round()
            return None if entry is None else entry.says

    def new_people(self, given, n=N_BATCH):
        ids = np.arange(self.next_id, self.next_id + n)
        X, _ = draw_people(self.rng, n, self.few_values)
        return X, ids, by_lender(X) if given and self.takes_lender else {}

    def add(self, decided, t):
        self.next_id += len(decided)
        for i, accepted in zip(decided.ids.tolist(), decided.accepted.tolist(), strict=True):
            self.applicants[i] = Applicant(accepted, round=t)

    @precondition(lambda self: self.opens and self.opened is None)
    @rule(given=st.booleans())
    def open_round(self, given):
        if (self.paused or self.ramp < 1) and not given:
            with pytest.raises(PausedError if self.paused else InputError):
                self.program.open_round(N_BATCH)
            return
        for _ in range(2):
            name = f"round {self.n_rounds}-{self.next_id}"
            policy = self.program.open_round(N_BATCH, incumbent=given, request=name)
        self.policies.append((policy, given))

    @precondition(lambda self: self.opens and self.opened is not None)
    @rule(data=st.data(), n_pieces=st.integers(1, 6))
    def decide_in_pieces(self, data, n_pieces):
        said, t = self.opened, self.n_rounds + 1
        X, ids, options = self.new_people(said["incumbent"])
        for rows in np.array_split(np.arange(N_BATCH), n_pieces):
            some = {name: values[rows] for name, values in options.items()}
            for _ in range(data.draw(st.integers(1, 2))):  # the same application may come again
                decided = self.program.decide(X.iloc[rows], ids=ids[rows], **some)
                assert (decided.round, decided.ramp) == (t, said["ramp"])
            self.add(decided, t)

    @precondition(lambda self: self.opens and self.policies)
    @rule(data=st.data(), n=st.integers(1, 5))
    def import_decisions(self, data, n):
        policy, given = data.draw(st.sampled_from(self.policies))
        X, ids, options = self.new_people(given, n)
        made = policy.decide(X, ids=ids, **options)
        place = {"round": policy.round, "at": "2031-03-20T12:00", "where": "a branch", **options}
        with pytest.raises(InputError, match="do not follow"):
            self.program.import_decisions(X, ~made.accepted, ids=ids, **place)
        for _ in range(2):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", LearningWarning)  # tests may begin again
                found = self.program.import_decisions(X, made.accepted, ids=ids, **place)
            assert (found.accepted == made.accepted).all()
        self.add(found, self.n_rounds + (self.opened is not None))

    @precondition(lambda self: self.opens and self.opened is not None)
    @rule()
    def close_round(self):
        self.program.close_round()

    @precondition(lambda self: self.opened is None)
    @rule(given=st.booleans())
    def decide(self, given):
        X, ids, options = self.new_people(given)
        r = 0.0 if self.paused else self.ramp
        if r < 1 and not options:
            before = self.program.checkpoint()
            with pytest.raises(PausedError if self.paused else InputError):
                self.program.decide(X, ids=ids, batch="without")
            assert self.program.checkpoint() == before
            return
        decided = self.program.decide(X, ids=ids, **options, batch=f"from {ids[0]}")
        assert decided.ids.tolist() == ids.tolist()
        assert decided.ramp == r
        if r == 0:
            assert (decided.accepted == options["incumbent"]).all()
        self.add(decided, self.n_rounds)

    @precondition(lambda self: self.takes_lender)
    @rule(ramp=st.sampled_from([0.0, 0.3, 1.0]))
    def change_ramp(self, ramp):
        self.program.ramp(ramp)
        self.ramp = ramp

    @precondition(lambda self: self.takes_lender)
    @rule()
    def pause_or_resume(self):
        self.program.resume() if self.paused else self.program.pause()
        self.paused = not self.paused

    def observe_all(self, ids, outcomes):
        good = np.array([int(outcome == "good") for outcome in outcomes])
        self.request("observe", np.array(ids), good, unlike_expected=True)  # they are random
        for i, outcome in zip(ids, outcomes, strict=True):
            self.applicants[i].outcome = outcome

    @precondition(lambda self: self.any(lambda a: a.pending))
    @rule(data=st.data(), part=st.booleans())
    def observe(self, data, part):
        if part:
            ids = self.choose(data, lambda a: a.pending)
        else:
            ids = [i for i, a in self.applicants.items() if a.pending]
        if ids:
            outcomes = ["good" if g else "bad" for g in self.rng.random(len(ids)) < 0.7]
            self.observe_all(ids, outcomes)

    @precondition(lambda self: self.any(lambda a: a.outcome in ("good", "bad") and not a.erased))
    @rule(data=st.data())
    def correct(self, data):
        ids = self.choose(data, lambda a: a.outcome in ("good", "bad") and not a.erased)
        if ids:
            other = {"good": "bad", "bad": "good"}
            self.observe_all(ids, [other[self.applicants[i].outcome] for i in ids])

    @precondition(lambda self: self.any(lambda a: a.pending))
    @rule(data=st.data())
    def withdraw(self, data):
        ids = self.choose(data, lambda a: a.pending)
        if ids:
            self.request("withdraw", np.array(ids))
            for i in ids:
                self.applicants[i].outcome = "withdrawn"

    @precondition(lambda self: self.takes_lender and self.any(lambda a: a.pending))
    @rule(data=st.data())
    def not_taken(self, data):
        n_rounds = self.n_rounds
        ids = self.choose(data, lambda a: a.pending and a.round >= n_rounds - 1)
        late = self.choose(data, lambda a: a.pending and a.round < n_rounds - 1, at_most=1)
        before = self.program.checkpoint()
        if late:
            with pytest.raises(InputError):
                self.program.not_taken(np.array([*ids, *late]))
        assert self.program.checkpoint() == before
        if ids:
            self.request("not_taken", np.array(ids))
            for i in ids:
                self.applicants[i].outcome = "not_taken"

    @precondition(lambda self: self.any(lambda a: not a.history))
    @rule(data=st.data(), accepted=st.booleans())
    def override(self, data, accepted):
        def can_be(a):
            return (
                a.accepted != accepted
                and a.outcome is None
                and not (a.overridden or a.history or a.erased)
            )

        ids = self.choose(data, can_be)
        if ids:
            self.request("override", np.array(ids), accepted, "an underwriter looked again")
            for i in ids:
                applicant = self.applicants[i]
                applicant.accepted = accepted
                applicant.overridden = applicant.once_overridden = True

    @precondition(lambda self: self.any(lambda a: a.overridden))
    @rule(data=st.data())
    def undo_override(self, data):
        ids = self.choose(data, lambda a: a.overridden and a.outcome is None and not a.erased)
        if ids:
            self.request("undo_override", np.array(ids), "a mistake")
            for i in ids:
                self.applicants[i].accepted = not self.applicants[i].accepted
                self.applicants[i].overridden = False

    @rule(data=st.data())
    def hold(self, data):
        ids = self.choose(data, lambda a: not a.held and not a.erased, at_most=2)
        if ids:
            self.request("hold", np.array(ids), "litigation")
            for i in ids:
                self.applicants[i].held = True

    @precondition(lambda self: self.any(lambda a: a.held))
    @rule(data=st.data())
    def release(self, data):
        ids = self.choose(data, lambda a: a.held, at_most=2)
        if ids:
            self.request("release", np.array(ids), "settled")
            for i in ids:
                self.applicants[i].held = False

    @rule(data=st.data())
    def erase(self, data):
        ids = self.choose(data, lambda a: not a.held and not a.erased, at_most=4)
        if ids:
            assert self.request("erase", np.array(ids), "requested", early=True) == len(ids)
            for i in ids:
                self.applicants[i].erased = True

    @precondition(lambda self: getattr(self, "requests", None))
    @rule(data=st.data())
    def repeat(self, data):
        """A request may come again at any time, but only as it was."""
        place = data.draw(st.integers(0, len(self.requests) - 1))
        call = method, (ids, *rest), options = self.requests[place]
        before = self.program.checkpoint()
        result = self.repeat_call(call)
        assert result == (len(ids) if method == "erase" else None)
        more = np.append(ids, 10**9)
        other = [1 - rest[0]] if method == "observe" else [*rest[:-1], "another reason"]
        if method not in ("withdraw", "not_taken"):
            with pytest.raises(InputError, match=options["request"]):
                self.repeat_call((method, (ids, *other), options))
        if not any(self.applicants[i].erased for i in ids.tolist()):
            rest = [np.append(rest[0], 1)] if method == "observe" else rest
            with pytest.raises(InputError, match=options["request"]):
                self.repeat_call((method, (more, *rest), options))
        assert self.program.checkpoint() == before

    @rule()
    def snapshot(self):
        self.program.snapshot()

    @rule()
    def reopen(self):
        self.program.ledger.engine.dispose()
        self.program = Program.open(self.url)

    @rule(data=st.data())
    def refuse_what_cannot_be(self, data):
        """Outcomes of the rejected, the erased and the unknown are refused, and nothing changes."""
        # An outcome of the history may come again if it is the recorded one.
        ids = self.choose(data, lambda a: a.erased or not a.accepted, at_most=2)
        before = self.program.checkpoint()
        for wrong in ([*ids, 10**9], ids or [10**9]):
            with pytest.raises(InputError):
                self.program.observe(np.array(wrong), np.ones(len(wrong), int))
        held = [i for i, a in self.applicants.items() if a.held][:1]
        if held:
            with pytest.raises(InputError):
                self.program.erase(np.array(held), "requested", early=True)
        assert self.program.checkpoint() == before

    @invariant()
    def a_copy_decides_again_and_verifies(self):
        if not hasattr(self, "program"):
            return
        copy = Path(self.folder.name, "copy.db")
        copy.unlink(missing_ok=True)
        with (
            closing(sqlite3.connect(f"{self.folder.name}/ledger.db")) as ours,
            closing(sqlite3.connect(copy)) as other,
        ):
            ours.backup(other)
        program = Program.open(f"sqlite:///{copy}")
        X, _ = draw_people(np.random.default_rng(0), N_BATCH, self.few_values)
        said = self.opened
        given = self.takes_lender and (said is None or said["incumbent"])
        options = by_lender(X) if given else {}
        named = {} if program.summary().open_round else {"batch": "next"}
        program.decide(X, ids=np.arange(10**6, 10**6 + N_BATCH), **options, **named)
        result = verify(program.ledger)
        program.ledger.engine.dispose()
        assert result.ok, result.problem

    @invariant()
    def the_record_agrees_with_the_model(self):
        if not hasattr(self, "program"):
            return
        ids = [i for i, a in self.applicants.items() if not (a.erased or a.history)]
        if not ids:
            return
        standing = self.program.standing(np.array(ids))
        for i, accepted, state in zip(ids, standing.accepted, standing.states, strict=True):
            assert accepted == self.applicants[i].accepted
            assert state == self.applicants[i].outcome


def play(make, *, lives, steps, few_values=False, takes_lender=True, opens=False):
    """Play lives of a program, each of so many steps; ``make`` returns its classifier."""
    kind = {"make": make, "few_values": few_values, "takes_lender": takes_lender, "opens": opens}
    machine = type("Machine", (ProgramMachine,), kind)
    options = settings(max_examples=lives, stateful_step_count=steps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        run_state_machine_as_test(machine, settings=options)
