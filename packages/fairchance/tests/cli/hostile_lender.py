"""A program with every kind of entry, in which all text tries to be code."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from unittest import mock

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import fairchance as fc
from fairchance.cli.app import app
from fairchance.ledger import Program
from fairchance.ledger.base import Facts

HOSTILE = ("<script>alert(1)</script>", "$x^{$ & \\alpha", "=2+3 [b]🙂")
EXPORTED = [
    *("id", "erased", "round", "batch", "at", "region", "accepted", "score", "threshold"),
    *("propensity", "drawn", "policy", "mode", "certified"),
    *("incumbent", "barred", "ramp", "reasons", "override"),
    *("override_reason", "override_by", "override_at", "outcome", "outcome_at"),
]


def applicants(n, start, seed):
    """Return applicants with columns, ids and groups that try to be code."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"score": rng.normal(size=n), "id": rng.choice(["=A1", "<b>b</b>"], n)})
    good = np.where(rng.random(n) < 1 / (1 + np.exp(-1.5 - X["score"])), "repaid", "lost")
    group = pd.DataFrame({"=<i>where": rng.choice(HOSTILE, n, p=[0.5, 0.3, 0.2])})
    return X, good, group, [f"=a{start + i}" for i in range(n)]


def classifier(**options):
    from sklearn.compose import make_column_transformer  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415

    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["id"]), remainder="passthrough"
    )
    return fc.PartialFeedbackClassifier(
        learner=make_pipeline(encoder, LogisticRegression()),
        utility=fc.Revenue(gain=200, loss=300),
        strategy=fc.GroupShare(),
        pos_label="repaid",
        random_state=1,
        **options,
    )


def run(*words, code=0):
    result = CliRunner().invoke(app, [str(word) for word in words], env={"FAIRCHANCE_LEDGER": ""})
    assert result.exit_code == code, (result.stderr, result.exception)
    return result


def refused(words, *arguments):
    result = run(*arguments, code=2)
    assert result.stdout == ""
    assert re.search(words, result.stderr), result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def start(folder):
    """Return a program with every kind of entry, and its decisions."""
    url = f"sqlite:///{folder}/lender.db"
    X, good, group, ids = applicants(300, 0, 0)
    start = datetime.now(UTC) - timedelta(days=400)
    with mock.patch("fairchance.ledger.sql._now", return_value=start):
        program = Program.create(
            url, classifier(), X, good, sensitive_features=group, ids=ids, by="<u>me</u>"
        )
    batches = []
    for t in range(3):
        program.ledger.clock = lambda t=t: start + timedelta(days=100 * t)
        X, good, group, ids = applicants(80, 300 + 80 * t, t + 1)
        decided = program.decide(X, sensitive_features=group, ids=ids, batch=f"<b>{t}</b>")
        batches.append((decided, good, X, group))
    decided, good, _, _ = batches[0]
    accepted, rejected = decided.ids[decided.accepted], decided.ids[~decided.accepted]
    program.observe(accepted[3:], good[decided.accepted][3:])
    program.withdraw(accepted[:1])
    program.override(accepted[1:2], False, "<img src=x>")
    program.override(rejected[:1], True, "=HYPERLINK(1)")
    with program.ledger.writing("main") as writer:
        gone = writer.standing([str(accepted[3]), str(rejected[1])]).persons
        writer.append("erasure", {"reason": "<em>asked</em>"}, Facts(erased=gone), by="me")
    program.ledger.clock = lambda: datetime.now(UTC)
    return url, program, batches, (accepted[3], rejected[1])
