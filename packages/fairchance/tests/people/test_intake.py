"""Truth values that callers pass in: who was accepted by the incumbent, barred, or took no loan."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from fairchance import CertifiedClassifier, PartialFeedbackClassifier
from fairchance.core.decisions import Decisions
from fairchance.errors import InputError
from fairchance.methods.estimator import check_ramp
from fairchance.people.intake import Intake, read_flags
from fairchance.people.store import NOT_TAKEN
from sentences import one_full_stop

X = np.arange(6.0)[:, None]
ACCEPTED = np.array([1, 1, 1, 1, 0, 0])
FLAGS = [True, False, True, False, True, False]


def intake(needs_outcomes=True):
    return Intake(
        raw=False,
        allow_missing=False,
        group_as_feature=False,
        pos_label=None,
        needs_outcomes=needs_outcomes,
    )


def history(y, not_taken, **options):
    return intake(**options).read_history(
        PartialFeedbackClassifier(), X, y, ACCEPTED, None, None, not_taken
    )


def read(**columns):
    estimator, reader = PartialFeedbackClassifier(), intake()
    past = reader.read_history(estimator, X, [0, 1, 0, 1, 0, 1], None, None, None)
    reader.passed(past)
    return reader.read_batch(estimator, X, ids=None, **columns)


@pytest.mark.parametrize(
    "kind",
    [
        list,
        lambda flags: np.array(flags, int),
        lambda flags: np.array(flags, float),
        lambda flags: np.array(flags, object),
        pd.Series,
        lambda flags: pd.Series(flags, dtype="boolean"),
        lambda flags: pd.DataFrame({"d": flags}),
        pl.Series,
        lambda flags: pl.Series(flags).cast(pl.Int8),
    ],
)
def test_truth_values_of_every_kind(kind):
    batch = read(incumbent=kind(FLAGS), barred=kind([not flag for flag in FLAGS]))
    assert batch.incumbent.tolist() == FLAGS
    assert batch.barred.tolist() == [not flag for flag in FLAGS]
    assert batch.incumbent.dtype == batch.barred.dtype == bool


def test_what_is_not_given_is_none():
    batch = read()
    assert batch.incumbent is None
    assert batch.barred is None


@pytest.mark.parametrize("name", ["incumbent", "barred", "accepted"])
@pytest.mark.parametrize("wrong", [np.nan, None, pd.NA, 2, 0.5, "yes"])
def test_other_values_are_refused(name, wrong):
    values = [True, False, wrong]
    with pytest.raises(InputError, match=f"{name}.*row 2") as refused:
        read_flags(pd.Series(values, dtype=object), 3, name)
    one_full_stop(refused)


def test_a_barred_applicant_cannot_be_accepted_by_the_incumbent():
    with pytest.raises(InputError, match=r"2 of 6.*first 8") as refused:
        read(incumbent=FLAGS, barred=[False, False, True, False, True, False])
    one_full_stop(refused)
    with pytest.raises(InputError, match=r"barred.*6"):
        read(barred=FLAGS[:3])


def test_y_is_not_read_where_no_loan_was_taken():
    y = np.array([1, np.nan, 0, 1, np.nan, 7])
    past = history(y, [0, 1, 0, 0, np.nan, 1])
    assert past.outcome.tolist() == [1, NOT_TAKEN, 0, 1]
    assert history(y, np.array([False, True] + [False] * 4)).outcome.tolist() == [1, -3, 0, 1]
    with pytest.raises(InputError, match=r"not_taken.*2"):
        history(y, [0, 2, 0, 0, 0, 0])


def test_a_history_without_a_loan_taken():
    with pytest.raises(InputError, match="4 accepted"):
        history(np.zeros(6), np.ones(6))
    assert history(None, np.ones(6), needs_outcomes=False).outcome.tolist() == [NOT_TAKEN] * 4


@pytest.mark.parametrize("wrong", [-0.1, 1.1, np.nan, True, "0.5", None])
def test_a_ramp_is_a_share(wrong):
    with pytest.raises(InputError, match=r"ramp.*\[0, 1\]") as refused:
        check_ramp(wrong, np.ones(1, bool))
    one_full_stop(refused)


def test_a_ramp_below_one_needs_the_incumbent():
    with pytest.raises(InputError, match=r"ramp=0\.2.*incumbent"):
        check_ramp(0.2, None)
    assert check_ramp(np.float32(1), None) == 1.0
    assert check_ramp(0, np.ones(1, bool)) == 0.0


def test_decisions_show_what_was_given():
    yes = np.ones(2, bool)
    decided = Decisions(np.arange(2), yes, yes, yes * 0.5, yes * 1.0, 1)
    assert not {"incumbent", "barred", "threshold"} & set(decided.columns())
    more = Decisions(np.arange(2), yes, yes, yes * 0.5, yes * 1.0, 1, incumbent=yes, barred=~yes)
    assert more.columns()["incumbent"].tolist() == [True, True]
    assert more.columns()["barred"].tolist() == [False, False]


@pytest.mark.parametrize("kind", [PartialFeedbackClassifier, CertifiedClassifier])
@pytest.mark.parametrize("as_table", [np.asarray, pd.DataFrame], ids=["numpy", "pandas"])
def test_numbers_and_text_in_one_column(kind, as_table):
    values = np.array([[1.0, 2.5], [2.0, "n/a"], [3.0, 4]] * 20, object)
    with pytest.raises(InputError, match=r"column 1 .*2\.5.*'n/a'.*numbers") as error:
        kind().fit(as_table(values), [0, 1, 1] * 20)
    one_full_stop(error)
