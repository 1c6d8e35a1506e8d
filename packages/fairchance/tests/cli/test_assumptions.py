"""Independence of applicants and σ are stated wherever a certificate or an interval is printed."""

from __future__ import annotations

import io
import re
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cli.lender_files import CERTIFIED, answer, apply, call, start, tell
from fairchance.audit import evaluate, groups
from fairchance.ledger import Program
from fairchance.words import independence, intervals_assume

SHOCK = 0.02
INTERVALS, CERTIFICATES = intervals_assume(SHOCK), independence(SHOCK)


def decided(batch):
    """Decide on a batch, observe its outcomes; return what both commands print."""
    came = apply(400, 1000 * batch)
    said = [call("decide", "applicants.csv", "-o", "decisions.csv", "--batch", f"month {batch}")]
    yes = answer().query("decision == 'accept'")["id"]
    tell(came[came["id"].isin(yes)][["id", "outcome"]])
    said.append(call("observe", "outcomes.csv", "--unlike-expected"))
    assert [one.exit_code for one in said] == [0, 0], said
    return [one.stdout for one in said]


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Return what each place prints about a certified program with shocks."""
    folder = tmp_path_factory.mktemp("shocks")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "2000")
        url = f"sqlite:///{folder}/lender.db"
        patch.setenv("FAIRCHANCE_LEDGER", url)
        config = CERTIFIED.replace("alpha = 0.2", f"alpha = 0.4\nshock = {SHOCK}")
        start(url, folder, config)
        for batch in range(1, 5):
            decide, observe = decided(batch)
        program = Program.open(url)
        assert program.summary().rounds[-1].certified
        told = {
            "decide": decide,
            "observe": observe,
            "status": call("status").stdout,
            "evaluate": call("evaluate", "--policy", "score >= 0.5").stdout,
            "notebook": unescape(program._repr_html_()),
            "notebook of a round": unescape(program.classifier.rounds_[-1]._repr_html_()),
            "notebook of an evaluation": unescape(
                evaluate(program.decision_log(), "score >= 0.5")._repr_html_()
            ),
            "notebook of groups": unescape(groups(program.decision_log())._repr_html_()),
        }
        call("report", "-o", "report.html")
        assert call("audit", "-o", "pack").exit_code == 0
        told["certificates"] = Path("pack/certificates.csv").read_text()
        files = {"report": "report.html", "audit": "pack/report.html"}
        files |= {"model card": "pack/model_card.txt"}
        told |= {name: unescape(Path(file).read_text()) for name, file in files.items()}
        granted = [one.says for one in program.summary().changes if one.kind == "certificate"]
        told["evidence"] = [one["log_wealth"] for one in granted]
    return told


def line(text):
    return re.sub(r"\s+", " ", text)


PLACES = ("status", "notebook", "report", "audit", "model card")


@pytest.mark.parametrize("place", [*PLACES, "decide", "notebook of a round"])
def test_the_assumption_is_beside_each_certificate(printed, place):
    assert CERTIFICATES in line(printed[place]).replace(INTERVALS, "")


@pytest.mark.parametrize(
    "place",
    [*PLACES, "observe", "evaluate", "notebook of an evaluation", "notebook of groups"],
)
def test_the_assumption_is_beside_intervals(printed, place):
    assert INTERVALS in line(printed[place])


@pytest.mark.parametrize("place", ["guarantees.md", "audit.md"])
def test_the_documentation_has_the_words(place):
    docs = Path(__file__).parents[4] / "docs" / place
    assert independence(0) in line(docs.read_text())


def test_plain_sums_with_the_allowance_give_the_evidence(printed):
    """As the readme of the pack says: the bets on applicants, less the allowance of each round."""
    rows = pd.read_csv(io.StringIO(printed["certificates"]))
    found = []
    for _, mine in rows.groupby("certificate", sort=False):
        logs, best = 0.0, 0.0
        for _, one in mine.groupby("round"):
            bets = {cap: one.filter(like=f"bet{cap}_").to_numpy() for cap in (4, 8)}
            wins = [np.log1p(bets[cap] * one[[f"z{cap}"]].to_numpy()).sum(0) for cap in (4, 8)]
            first = np.concatenate([bets[4][0], bets[8][0]])
            allowance = (first * one["mass"].iloc[0] * one["shock"].iloc[0]) ** 2 / 2
            logs = logs + np.concatenate(wins) - allowance
            best = max(best, np.log(np.exp(logs).mean()))
        found.append(best)
    assert found == pytest.approx(printed["evidence"], abs=1e-9)
    assert found
    assert set(rows["shock"]) == {SHOCK}
