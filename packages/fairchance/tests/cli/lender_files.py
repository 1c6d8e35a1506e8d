"""A lender's files for tests of the commands on real batches."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from typer.testing import CliRunner

from fairchance.cli.app import app

PROGRAM = """
[columns]
id = "id"
outcome = "outcome"
groups = ["sex"]
[outcomes]
good = ["repaid", 1]
bad = ["default", 0]
withdrawn = "fraud"
[classifier]
kind = "partial-feedback"
alpha = 0.2
utility = { good = 200, bad = -300 }
seed = 3
"""
CERTIFIED = PROGRAM.replace('"partial-feedback"', '"certified"\nhorizon = 6')


def people(n, start=0, seed=0):
    """Return applicants with their outcomes."""
    rng = np.random.default_rng([seed, start])
    frame = pd.DataFrame(
        {
            "id": [f"a{start + at:05d}" for at in range(n)],
            "income": rng.normal(size=n),
            "debt": rng.normal(size=n),
            "sex": rng.choice(["f", "m"], n),
        }
    )
    odds = np.exp(1.5 + 1.5 * frame["income"] - frame["debt"])
    frame["outcome"] = np.where(rng.random(n) < odds / (1 + odds), "repaid", "default")
    return frame


def call(*words, stdin=None):
    return CliRunner().invoke(app, [str(word) for word in words], input=stdin)


def done(*words, stdin=None, code=0):
    """Run a command with --json, check its exit code, and return the parsed output."""
    result = call(*words, "--json", stdin=stdin)
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    return json.loads(result.stdout)


def refused(*words, code=2):
    """Run a command that must fail, and return its error message."""
    result = call(*words)
    assert result.exit_code == code, (result.stdout, result.stderr, result.exception)
    (line,) = result.stderr.strip().splitlines()
    assert line.startswith("fairchance: ")
    assert line.endswith(".")
    return line.removeprefix("fairchance: ")


def causes(refused):
    """Return how many rows were refused, by the codes of their mistakes."""
    return {
        ", ".join(one["code"] for one in cause["mistakes"]): cause["rows"]
        for cause in refused["causes"]
    }


def start(url, folder, config=PROGRAM, n=400):
    """Start a program at a URL from files in a folder; return its history."""
    past = people(n)
    past.loc[past["income"] < -0.3, "outcome"] = ""
    past.to_csv(folder / "history.csv", index=False)
    (folder / "program.toml").write_text(config)
    done("init", "--ledger", url, "--config", folder / "program.toml", folder / "history.csv")
    return past


def apply(n=100, start=1000, name="applicants.csv"):
    """Write a file of applicants; return them with their outcomes."""
    applicants = people(n, start)
    applicants.drop(columns="outcome").to_csv(name, index=False)
    return applicants


def answer(path="decisions.csv"):
    return pd.read_csv(path, dtype={"id": str}, keep_default_na=False, na_values={"threshold": ""})


def tell(rows, name="outcomes.csv"):
    pd.DataFrame(rows, columns=["id", "outcome"]).to_csv(name, index=False)


def entries(program, kind):
    with program.ledger.reading(program.name) as reader:
        return list(reader.entries(kind=kind))
