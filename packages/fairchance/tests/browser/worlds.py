"""Programs and results to show on pages, with plain or with hostile names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd

import fairchance as fc
from fairchance.ledger import Program
from fairchance.simulate.populations import Lender
from fairchance_lab.experiments.results import Failure, Results
from fairchance_lab.experiments.runner import Run, run_experiment
from fairchance_lab.experiments.spec import Experiment
from fairchance_lab.experiments.world_spec import WorldSpec

# All that could end a text and begin markup, a script, a template or another direction.
HOSTILE = (
    '"><img data-pwned src=x onerror=window.pwned=1></script><script>window.pwned=1</script>'
    "<b data-pwned>{{7*7}} ${7*7} $& &lt; %s\n\u202eright to left" + "W" * 300
)


METHODS = ("plain", "mine", "certified-per-group", "no-exploration", "opt-offline", "ceiling")


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
    start = datetime.now(UTC) - timedelta(days=400)
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


def results(spell=plain, n_variants=0):
    """Return the results of a small experiment, with users' names spelled in a way."""
    world = WorldSpec("lender", n_batch=200, n_rounds=5, past=({"rule": "policy"},))
    variants = {f"cap {k}": {"method": "plain", "weight_cap": k} for k in range(1, n_variants + 1)}
    experiment = Experiment(
        "trial",
        world,
        (*METHODS, *variants),
        variants={"mine": {"method": "explore-fair", "weight_cap": 7}} | variants,
        vary={"alpha": (0.1, 0.15)},
        repetitions=2,
    )
    made = run_experiment(experiment, Lender(), Run(jobs=1))
    names = {name: spell(name) for name in ("trial", "mine", "A", "B", "lender")}
    names |= {made.about["data"][key]: spell(key) for key in ("source", "fingerprint")}
    failure = Failure(made.settings[0], names["mine"], 0, 1, spell("It failed."))

    def renamed(value):
        if isinstance(value, dict):
            return {renamed(key): renamed(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(renamed, value))
        return names.get(value, value) if isinstance(value, str) else value

    columns = {
        name: np.array(renamed(list(column)), column.dtype) for name, column in made.columns.items()
    }
    return Results(columns, renamed(made.about), renamed(made.certificates), (failure,))
