"""Both classifiers take tables as users have them: five lines, limits, reasons, files, ledgers."""

from __future__ import annotations

import warnings
from datetime import date

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

import fairchance as fc
from fairchance.errors import InputError, LearningWarning
from fairchance.ledger import Program, verify
from fairchance.methods.storage import dumps, loads
from fairchance.people.reasons import ReferenceApplicant, contributions, decode, reasons_for
from mixed_tables import KINDS, applicants
from refused_people import log_odds

pytestmark = pytest.mark.filterwarnings("ignore:The column 'name' is left out")

METHODS = {
    "algorithm 1": lambda **options: fc.PartialFeedbackClassifier(random_state=0, **options),
    "certified": lambda **options: fc.CertifiedClassifier(random_state=0, **options),
}
LEARNERS = {
    "default": lambda: None,
    "logistic": lambda: LogisticRegression(solver="newton-cholesky"),
    "trees": lambda: HistGradientBoostingClassifier(max_iter=10, random_state=0),
}


@pytest.fixture(params=METHODS)
def method(request):
    return METHODS[request.param]


def play(clf, seed=0, kind="pandas", n=600, n_rounds=3, **groups):
    """Fit a classifier to a made history and run some rounds; return it and the last round."""
    rng = np.random.default_rng(seed)
    X, good, z = applicants(rng, n, kind)
    clf.fit(X, good, accepted=z + rng.normal(size=n) > 0, **groups)
    for _ in range(n_rounds):
        X, good, z = applicants(rng, n, kind)
        batch = clf.decide(X, **groups)
        clf.observe(batch.ids[batch.accepted], good[batch.accepted])
    return clf, X, batch, z


def test_five_lines(method):
    rng = np.random.default_rng(0)
    (past, outcomes, z), (applications, later, _) = (applicants(rng, 500) for _ in range(2))
    clf = method(missing_values="?").fit(past, outcomes, accepted=z > 0)
    batch = clf.decide(applications)
    clf.observe(batch.ids[batch.accepted], later[batch.accepted])
    assert 0 < batch.accepted.sum() < 500


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_kind_of_table_changes_nothing_and_all_columns_count(method, learner):
    scores = []
    for kind in KINDS:
        clf, _, batch, z = play(method(learner=LEARNERS[learner](), missing_values="?"), kind=kind)
        scores.append(batch.score)
        assert batch.backend == kind
    assert np.array_equal(scores[0], scores[1])
    assert np.array_equal(scores[0], scores[2])
    assert np.corrcoef(log_odds(np.clip(scores[0], 1e-6, 1 - 1e-6)), z)[0, 1] > 0.7
    assert {one.name for one in clf._intake.likeness.columns} == {
        *("job", "age", "owner", "income", "since", "incumbent")
    }


def test_numbers_in_a_table_decide_as_an_array_does(method, rng):
    X = rng.normal(size=(900, 3))
    good = (rng.random(900) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    answers = []
    for table in (X, pd.DataFrame(X, columns=[*"abc"])):
        clf = method().fit(table[:600], good[:600], accepted=X[:600, 1] > -1)
        answers.append(clf.decide(table[600:]).score.tobytes())
    assert answers[0] == answers[1]


def test_a_column_of_identifiers_is_left_out_with_a_warning(method):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        X, good, z = applicants(np.random.default_rng(0), 300)
        clf = method().fit(X, good, accepted=z > 0)
    (left_out,) = [one for one in caught if "left out" in str(one.message)]
    assert left_out.category is LearningWarning
    assert left_out.filename == __file__
    assert "'name'" in str(left_out.message)
    first = clf.decide(X)
    again = method().fit(X, good, accepted=z > 0).decide(X.assign(name="someone else"))
    assert np.array_equal(first.propensity, again.propensity)
    with pytest.raises(InputError, match=r"X.*'name'"):
        clf.decide(X.drop(columns="name"))


def test_unseen_values_and_gaps_are_decided(method):
    clf, X, *_ = play(method())
    X = X.assign(job="unheard of", income=np.where(np.arange(600) < 9, np.nan, X["income"]))
    with pytest.raises(InputError, match=r"600.*'job'"):
        clf.decide(X)
    batch = clf.decide(X, unlike_history=True)
    assert np.isfinite(batch.score).all()
    with pytest.raises(InputError, match=r"600.*'income'"):
        clf.decide(X.assign(income=None))
    with pytest.raises(InputError, match="'job'"):
        clf.decide(X.assign(job=3))


def test_a_word_that_is_not_named_is_a_category(method):
    X, good, z = applicants(np.random.default_rng(0), 400)
    named, unnamed = (method(missing_values=words) for words in ("?", None))
    for clf in (named, unnamed):
        clf.fit(X, good, accepted=z > 0)
    assert "?" in unnamed._intake.columns.columns[0].categories
    assert "?" not in named._intake.columns.columns[0].categories
    with pytest.raises(InputError, match=r"missing_values.*'\?'"):
        named.set_params(missing_values=None).decide(X)
    with pytest.raises(InputError, match="missing_values"):
        method(missing_values=True).fit(X, good, accepted=z > 0)


def test_a_saved_classifier_continues(method):
    clf, X, *_ = play(method(missing_values="?"))
    again = loads(dumps(clf))
    assert np.array_equal(clf.decide(X).propensity, again.decide(X).propensity)


def test_no_value_of_few_applicants_is_kept():
    X, good, z = applicants(np.random.default_rng(0), 300)
    X.loc[[7, 8, 9, 10], "job"] = "lighthouse keeper"
    for method in METHODS.values():
        clf = method().fit(X, good, accepted=z > 0)
        assert b"lighthouse" not in dumps(clf._intake)
        assert "lighthouse" not in repr(clf._intake.columns)


@pytest.mark.parametrize(
    ("rule", "excluded"),
    [
        (fc.OneOf("job", ("clerk", "diver")), lambda X: X["job"].isin(["clerk", "diver", "?"])),
        (fc.Below("since", date(2020, 7, 1)), lambda X: X["since"] < pd.Timestamp("2020-07-01")),
        (fc.Above("since", "2020-07-01"), lambda X: X["since"] > pd.Timestamp("2020-07-01")),
        (fc.Below("age", 30), lambda X: (X["age"] < 30) | X["age"].isna()),
        (fc.OneOf("owner", (True,)), lambda X: X["owner"]),
        (
            fc.OneOf(0, ("nurse",)) | fc.Below(4, 20),
            lambda X: X["job"].isin(["nurse", "?"]) | (X["income"] < 20),
        ),
    ],
    ids=["two jobs", "before a day", "after a day", "age", "flag", "by position"],
)
def test_limits_read_the_columns_of_the_table(method, rule, excluded):
    clf, X, batch, _ = play(method(strategy=fc.Limited(exclude=rule), missing_values="?"))
    barred = clf.never_explored(X)
    assert np.array_equal(barred, excluded(X))
    assert barred.any()
    assert not batch.explored[barred].any()


def test_limits_that_cannot_be_read(method):
    for rule, message in (
        (fc.Below("job", 3), "'job'"),
        (fc.OneOf("name", ("x",)), None),
        (fc.Below("name", 3), "'name'"),
        (fc.Above("sex", 3), "'sex'"),
    ):
        clf = method(strategy=fc.Limited(exclude=rule))
        if message is None:
            play(clf)  # a value that a limit names has a code of its own
        else:
            with pytest.raises(InputError, match=message):
                play(clf)


def test_amounts_and_functions_read_the_codes():
    strategy = fc.Limited(exposure=200, amount="income")
    _, X, batch, _ = play(METHODS["algorithm 1"](strategy=strategy))
    assert 0 < X["income"][batch.explored].sum() <= 200
    seen = []

    def by_age(X, score, group):
        seen.append(X)
        return 1.0 + np.nan_to_num(X[:, 1])

    play(METHODS["algorithm 1"](strategy=by_age), n_rounds=1)
    assert seen[0].shape[1] == 5


def test_a_past_policy_needs_numbers():
    X, good, z = applicants(np.random.default_rng(0), 300)
    clf = METHODS["algorithm 1"]()
    with pytest.raises(InputError, match="past_policy"):
        clf.fit(X, good, accepted=z > 0, past_policy=lambda X: np.ones(len(X)))


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("groups", [{}, {"group_as_feature": True}])
def test_reasons_are_about_the_columns_of_the_table(method, learner, groups):
    group = {"sensitive_features": np.arange(600) % 2} if groups else {}
    clf = method(learner=LEARNERS[learner](), missing_values="?", **groups)
    clf, X, batch, _ = play(clf, **group)
    best = batch.score >= np.quantile(batch.score, 0.7)  # trees may accept next to nobody
    reference = ReferenceApplicant.of(X, best, ["owner"], missing_values=("?",))
    assert reference.values[0] in ("clerk", "nurse")
    middle = X["since"][best].mean()
    assert abs(pd.Timestamp(reference.values[3], unit="D") - middle) < pd.Timedelta("1ms")
    found = contributions(clf, X, reference, **group)
    assert found.shape == (600, 6)
    assert not found[:, [2, 5]].any()  # protected, and left out
    for row in range(0, 600, 100):
        person, own = X.iloc[[row]], {name: value[[row]] for name, value in group.items()}
        here = clf.scored_by(person, **own).log_odds()[0]
        for column in (0, 1, 3, 4):
            name, value = X.columns[column], reference.values[column]
            if column == 3:
                value = middle
            there = clf.scored_by(person.assign(**{name: value}), **own).log_odds()[0]
            assert found[row, column] == pytest.approx(here - there, abs=1e-6)
    told = reasons_for(clf, X, batch.accepted, reference, **group)
    names = {name for one in told if one is not None for name, _ in decode(one, X.columns)}
    assert names <= {*X.columns, "missing age", "missing job"} - {"owner", "name"}
    gaps = [row for row in np.flatnonzero(~batch.accepted) if X["job"][row] == "?"]
    for row in gaps:
        assert "job" not in [name for name, _ in decode(told[row], X.columns)]


@pytest.mark.parametrize("learner", ["default", "trees"])
def test_a_ledger_keeps_tables_and_repeats_decisions(method, learner, tmp_path):
    rng = np.random.default_rng(0)
    X, good, z = applicants(rng, 400, "polars")
    program = Program.create(
        f"sqlite:///{tmp_path}/x.db",
        method(learner=LEARNERS[learner](), missing_values="?", strategy=limited()),
        X,
        good,
        accepted=z + rng.normal(size=400) > 0,
    )
    twin = method(learner=LEARNERS[learner](), missing_values="?", strategy=limited())
    rng = np.random.default_rng(0)
    X, good, z = applicants(rng, 400)
    twin.fit(X, good, accepted=z + rng.normal(size=400) > 0)
    for _ in range(3):
        X, good, _ = applicants(rng, 200, "pandas")
        batch, other = program.decide(X), twin.decide(X)
        assert np.array_equal(batch.propensity, other.propensity)
        program.observe(batch.ids[batch.accepted], good[batch.accepted])
        twin.observe(batch.ids[batch.accepted], good[batch.accepted])
    reasons = program.reasons(batch.ids[~batch.accepted])
    told = {name for each in reasons.values() for name, _ in each}
    assert {"job", "since"} & told
    assert not {"name", "?"} & told
    opened = Program.open(f"sqlite:///{tmp_path}/x.db")
    X, *_ = applicants(rng, 200, "pyarrow")
    assert np.array_equal(opened.decide(X).propensity, twin.decide(X).propensity)
    assert verify(opened.ledger, relearn=True).ok
    with opened.ledger.reading(opened.name) as reader:
        headers = [str(entry.says) for entry in reader.entries()]
    assert not any("applicant " in header for header in headers)  # no name outlives an erasure


def limited():
    return fc.Limited(exclude=fc.Below("since", "2020-02-01") | fc.OneOf("job", ("diver",)))


def test_numbers_in_writing_are_named(rng):
    incomes = [f"{value:,}" for value in rng.integers(5, 25, 400) * 100]
    X = {"income": incomes, "postcode": rng.choice(["01067", "20095"], 400)}
    with pytest.warns(LearningWarning, match="'income' holds text such as '1,") as caught:
        fc.PartialFeedbackClassifier().fit(pd.DataFrame(X), rng.integers(0, 2, 400))
    assert len(caught) == 1
