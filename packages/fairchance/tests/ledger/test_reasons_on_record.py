"""A program stores reasons with its decisions, returns them, and erases them with applicants."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import fairchance as fc
from fairchance.errors import InputError, UnknownIdError
from fairchance.ledger.base import Facts
from fairchance.ledger.program import Program
from fairchance.ledger.verification.walk import verify
from fairchance.people.reasons import (
    ReferenceApplicant,
    decode,
    first_misfit,
    reasons_for,
)
from ledger_worlds import algorithm_1, certified, started
from refused_people import log_odds, mixed_people
from small_worlds import lender_world


def test_groups_are_no_reasons_even_with_the_largest_weight(tmp_path):
    rng = np.random.default_rng(7)

    def people(n):
        sex = rng.choice(["f", "m"], n)
        X = pd.DataFrame({"income": rng.normal(size=n), "sex": (sex == "m") * 1.0})
        good = rng.random(n) < 1 / (1 + np.exp(-0.3 * X["income"] + 4 * X["sex"] - 2))
        return X, good.astype(int), pd.DataFrame({"sex": sex})

    X, good, group = people(800)
    accepted = rng.random(800) < np.where(group["sex"] == "f", 0.9, 0.4)
    for at, (features, groups) in enumerate(
        [(["income", "sex"], group), (["income", "sex"], group["sex"]), (["income"], group)]
    ):
        url = f"sqlite:///{tmp_path}/{at}.db"
        classifier = algorithm_1(group_as_feature="sex" not in features)
        program = Program.create(
            url, classifier, X[features], good, accepted=accepted, sensitive_features=groups
        )
        batch, _, later = people(300)
        later = later if isinstance(groups, pd.DataFrame) else later["sex"]
        decided = program.decide(batch[features], sensitive_features=later)
        no = decided.ids[~decided.accepted]
        reasons = program.reasons(no)
        assert {name for each in reasons.values() for name, _ in each} == {"income"}
        # The group has the largest weight, and still is not named.
        scored = program.classifier.scored_by(batch[features], sensitive_features=later)
        of_income, of_group = np.abs(scored.likelihood.likelihood.coef)
        assert of_group > max(1, of_income)


@pytest.mark.parametrize("make", [algorithm_1, certified])
def test_reasons_are_stored_with_decisions(tmp_path, make):
    url = f"sqlite:///{tmp_path}/ledger.db"
    program, twin, (one, two, *_) = started(url, make())
    for batch in (one, two):
        X, group = batch.people.X, batch.people.group
        decided = program.decide(X, sensitive_features=group)
        twin.decide(X, sensitive_features=group)
        yes = decided.accepted
        with program.ledger.reading("main") as reader:
            *_, entry = reader.entries(kind="batch")
            people = reader.facts(entry).people
            says = next(reader.entries(kind="program")).says
        past = lender_world(0, n_batch=200, n_rounds=6).history()
        reference = ReferenceApplicant.of(past.people.X, past.accepted)
        assert ReferenceApplicant.read(says["reference"]) == reference
        expected = reasons_for(twin, X, yes, reference, sensitive_features=group)
        assert list(people.reasons) == list(expected)
        assert (
            first_misfit(twin, X, yes, reference, people.reasons, sensitive_features=group) is None
        )
        program.observe(decided.ids[yes], batch.outcome[yes])
        twin.observe(decided.ids[yes], batch.outcome[yes])
    no = decided.ids[~yes]
    reasons = Program.open(url).reasons(no[::-1])
    assert list(reasons) == no[::-1].tolist()
    rows = np.flatnonzero(~yes)
    assert reasons == {
        int(name): decode(expected[row], reference.names)
        for name, row in zip(no, rows, strict=True)
    }
    assert max(len(each) for each in reasons.values()) >= 2
    assert program.reasons([]) == {}
    for ids, error in (
        ([no[0], decided.ids[yes][0]], InputError),
        ([0], InputError),  # of the history
        ([10**9], UnknownIdError),
    ):
        with pytest.raises(error, match=f"1 of {len(ids)} ids .*'{ids[-1]}'"):
            program.reasons(ids)


def test_reasons_name_columns_of_a_frame(tmp_path):
    rng = np.random.default_rng(8)
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["trade"]),
        (SimpleImputer(), ["age", "debt"]),
    )
    learner = make_pipeline(encoder, LogisticRegression())
    classifier = algorithm_1(learner=learner, strategy=fc.Uniform(), first_round="learned")
    X, y = mixed_people(rng, 400)
    url = f"sqlite:///{tmp_path}/ledger.db"
    program = Program.create(url, classifier, X, y, accepted=X["debt"] < 0.5)
    taken = X[X["debt"] < 0.5]
    reference = {"trade": "baker", "age": taken["age"].mean(), "debt": taken["debt"].mean()}
    X, _ = mixed_people(rng, 100)
    decided = program.decide(X)
    rows = np.flatnonzero(~decided.accepted)
    reasons = program.reasons(decided.ids[rows])
    named = {name for each in reasons.values() for name, _ in each}
    assert named >= {"trade", "missing trade", "age", "debt"}
    assert named <= {"trade", "missing trade", "age", "missing age", "debt"}

    def score(people):
        return log_odds(program.classifier.predict_proba(pa.Table.from_pandas(people))[:, 1])

    for row, each in list(zip(rows, reasons.values(), strict=True))[:12]:
        person = X.iloc[[row]]
        changed = [person.assign(**{name: value}) for name, value in reference.items()]
        scores = score(pd.concat([person, *changed], ignore_index=True))
        expected = sorted(zip(scores[0] - scores[1:], reference, strict=True))
        expected = [(name, value) for value, name in expected if value < -1e-6]
        gone = person.iloc[0].isna()
        names = [f"missing {name}" if gone[name] else name for name, _ in expected]
        assert [name for name, _ in each] == names
        assert np.allclose([v for _, v in each], [v for _, v in expected], rtol=1e-5)
    assert verify(program.ledger).problem is None


def test_reasons_of_the_erased_are_erased(tmp_path):
    program, _, (one, *_) = started(f"sqlite:///{tmp_path}/ledger.db", algorithm_1())
    decided = program.decide(one.people.X, sensitive_features=one.people.group)
    no = decided.ids[~decided.accepted]
    with program.ledger.writing("main") as writer:
        gone = writer.standing([str(no[0])]).persons
        writer.append("erasure", {"why": "asked"}, Facts(erased=gone), by="t")
        (entry,) = writer.entries(kind="batch")
        people = writer.facts(entry).people
    row = int(np.flatnonzero(~decided.accepted)[0])
    assert people.reasons[row] is None
    assert people.reasons[int(np.flatnonzero(~decided.accepted)[1])] is not None
    with pytest.raises(UnknownIdError, match="are unknown or erased"):
        program.reasons(no[:1])
    assert list(program.reasons(no[1:2])) == no[1:2].tolist()
