"""Values of text columns that nobody had so far are told of, with what the score makes of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from cli.lender_files import PROGRAM, call, done, people, start
from secondlook.cli.input_checks import _known_values, unseen_values_message
from secondlook.people.likelihoods import (
    EstimatorLikelihood,
    GroupedLikelihood,
    LinearLikelihood,
    MeanLikelihood,
)


@pytest.fixture
def lender(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/lender.db"
    monkeypatch.setenv("SECONDLOOK_LEDGER", url)
    (tmp_path / "program.toml").write_text(PROGRAM)
    past = people(300)
    past.loc[past["income"] < -0.5, "outcome"] = ""
    past["region"] = np.where(past.index % 3 == 0, "north", "south")
    past.to_csv("history.csv", index=False)
    done("init", "--config", "program.toml", "history.csv")


def applicants(start_at, regions):
    new = people(len(regions), start_at).drop(columns="outcome").assign(region=regions)
    new.to_csv("applicants.csv", index=False)
    return new


def test_a_value_that_nobody_had_is_told_of_until_it_is_learned(lender):
    regions = ["north"] * 30 + ["moon"] * 12 + ["'Mars"] + ["south"] * 10
    applicants(1000, regions)
    said = call("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may").stdout
    assert "Never seen in 'region': 'moon' (12 people), \"'Mars\" (1 person); " in said
    told = done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    row = {"column": "region", "treated": "ignore"}
    assert told["unseen"] == [
        row | {"value": "moon", "people": 12},
        row | {"value": "'Mars", "people": 1},
    ]
    assert (told["people"], told["refused"]["rows"]) == (53, 0)
    got = pd.read_csv("decisions.csv")
    yes = got["id"][got["decision"] == "accept"]
    moon = {f"a{1000 + at:05d}" for at in range(30, 42)}
    assert moon & set(yes)  # or nothing could be learned of them
    pd.DataFrame({"id": yes, "outcome": "repaid"}).to_csv("told.csv", index=False)
    done("observe", "told.csv")
    applicants(2000, ["moon", "north", "sun"])
    found = done("decide", "applicants.csv", "-o", "later.csv")["unseen"]
    assert [one["value"] for one in found] == ["sun"]
    applicants(1000, regions)  # a round that is not the last: its policy is no longer at hand
    again = done("decide", "applicants.csv", "-o", "decisions.csv", "--batch", "may")
    assert again["unseen"] is None


def test_nothing_is_said_of_columns_of_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SECONDLOOK_LEDGER", url := f"sqlite:///{tmp_path}/lender.db")
    start(url, tmp_path, n=200)
    people(20, 1000).drop(columns="outcome").to_csv("applicants.csv", index=False)
    assert done("decide", "applicants.csv", "-o", "decisions.csv")["unseen"] == []


def test_a_line_for_each_column_names_the_first_values_and_counts_the_rest():
    row = {"column": "job", "people": 3, "treated": "use_encoded_value"}
    found = [row | {"value": f"v{at}"} for at in range(5)]
    assert unseen_values_message(
        [*found, row | {"column": "x", "value": "w" * 60, "treated": None}]
    ) == [
        "Never seen in 'job': 'v0' (3 people), 'v1' (3 people), 'v2' (3 people) and 2 more (6 "
        "people); the score treats them all as one other value "
        "(handle_unknown='use_encoded_value').",
        f"Never seen in 'x': '{'w' * 40}…' (3 people); the learner decides how to read them.",
    ]
    assert unseen_values_message([]) == unseen_values_message(None) == []


FRAME = pd.DataFrame(
    {"a": ["x", "y", "x", "y"], "n": [0.0, 1.0, 2.0, 3.0], "b": ["p", "p", "q", "q"]}
)


@pytest.mark.parametrize(
    "columns",
    [["a", "b"], [0, 2], [True, False, True], make_column_selector(dtype_exclude="number")],
)
@pytest.mark.parametrize(
    "encoder",
    [
        OneHotEncoder(handle_unknown="ignore"),
        OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
        make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
    ],
    ids=["one-hot", "ordinal", "behind an imputer"],
)
def test_what_a_pipeline_s_encoders_know(encoder, columns):
    head = ColumnTransformer([("text", encoder, columns)], remainder="passthrough")
    fitted = make_pipeline(head, LogisticRegression()).fit(FRAME, [0, 1, 0, 1])
    likelihood = EstimatorLikelihood(fitted, 1)
    inner = encoder[-1] if hasattr(encoder, "steps") else encoder
    known = _known_values(likelihood, list(FRAME))
    expected = {"a": ({"x", "y"}, inner.handle_unknown), "b": ({"p", "q"}, inner.handle_unknown)}
    assert known == expected


def test_parts_of_a_likelihood_know_what_any_of_them_knows():
    def part(rows):
        head = ColumnTransformer(
            [("text", OneHotEncoder(handle_unknown="ignore"), slice("a", "a"))]
        )
        learner = make_pipeline(head, LogisticRegression())
        return EstimatorLikelihood(learner.fit(FRAME.iloc[rows], [0, 1]), 1)

    both = MeanLikelihood((part([0, 2]), GroupedLikelihood((part([1, 3]),))))
    assert _known_values(both, list(FRAME)) == {"a": ({"x", "y"}, "ignore")}
    assert _known_values(LinearLikelihood(np.zeros(2), 0.0), ["a", "b"]) == {}
