"""Programs to show on pages, with plain or with hostile names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from unittest import mock

import numpy as np
import pandas as pd

import fairchance as fc
from fairchance.ledger import Program

# All that could end a text and begin markup, a script, a template or another direction.
HOSTILE = (
    '"><img data-pwned src=x onerror=window.pwned=1></script><script>window.pwned=1</script>'
    "<b data-pwned>{{7*7}} ${7*7} $& &lt; %s\n\u202eright to left" + "W" * 300
)


def plain(text):
    """Return a name as it is."""
    return text


def hostile(text):
    """Return a name that tries to be code and has no end."""
    return text + HOSTILE


def in_javascript(text):
    """Return a name that objects in JavaScript know in another way."""
    names = ("__proto__", "constructor", "toString", "null", "undefined", "NaN", "$&", "datum.x")
    return names[sum(map(ord, text)) % len(names)]


def applicants(n, start, spell):
    """Return features, outcomes, groups and ids of applicants."""
    rng = np.random.default_rng(start)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=[spell("income"), spell("debt"), "years"])
    good = rng.random(n) < 1 / (1 + np.exp(-1.5 - 1.5 * X.iloc[:, 0] + X.iloc[:, 1]))
    groups = pd.DataFrame({spell("sex"): rng.choice([spell("women"), spell("men")], n)})
    outcome = np.where(good, spell("repaid"), spell("lost"))
    visible = "".join(filter(str.isprintable, spell("")))  # ids with other characters are refused
    return X, outcome, groups, [f"{start + at}{visible}" for at in range(n)]


def program(folder, spell=plain, n_rounds=4):
    """Return a certified program with a certificate per group and every kind of entry."""
    X, outcome, groups, ids = applicants(600, 0, spell)
    clf = fc.CertifiedClassifier(
        alpha=0.25,
        utility=fc.Revenue(gain=200, loss=300),
        certify="per_group",
        horizon=6,
        pos_label=spell("repaid"),
        random_state=3,
    )
    accepted = X.iloc[:, 0] > -0.5
    start = datetime.now(UTC) - timedelta(days=400)
    with mock.patch("fairchance.ledger.sql._now", return_value=start):
        program = Program.create(
            f"sqlite:///{folder}/lender.db",
            clf,
            X,
            outcome,
            accepted=accepted,
            sensitive_features=groups,
            ids=ids,
            name=spell("lender"),
            by=spell("Ann"),
        )
    for t in range(n_rounds):
        program.ledger.clock = lambda t=t: start + timedelta(days=80 * t)
        X, outcome, groups, ids = applicants(300, 1000 * (t + 1), spell)
        decided = program.decide(X, sensitive_features=groups, ids=ids, batch=spell(f"batch {t}"))
        yes, no = decided.ids[decided.accepted], decided.ids[~decided.accepted]
        if t < n_rounds - 1:
            program.observe(yes, outcome[decided.accepted])
    program.withdraw(yes[:1])
    program.override(yes[1:2], False, spell("a fraud"))
    program.override(no[:1], True, spell("a friend"))
    program.hold(yes[2:3], spell("court"))
    program.erase(no[1:2], spell("asked"), early=True)
    return program
