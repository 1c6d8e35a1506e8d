"""A client that was generated from the description plays a lender's year, and verify proves it."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest

from cli.lender_files import done
from fairchance.ledger import verify
from service.serving import served

pytestmark = pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning")
LENDER = Path(__file__).parents[4] / "examples" / "lender"
APPLICANTS, AT_ONCE = 500, 100
# As in the lender's other year: the outcomes of docs/production.md, and the rounds by time.
CHANGES = {
    "2031-03": ("ramp", 0.2),
    "2031-04": ("ramp", 1.0),
    "2031-05": ("pause", None),
    "2031-06": ("resume", None),
}


@pytest.fixture
def lender():
    return runpy.run_path(str(LENDER / "lender.py"))


@pytest.fixture
def url(tmp_path, lender, monkeypatch):
    """Return the URL of the lender's program, with a round a month."""
    monkeypatch.chdir(tmp_path)
    lender["write_history"]()
    config = (LENDER / "program.toml").read_text()
    Path("program.toml").write_text(f'{config}\n[rounds]\nevery = "1 month"\n')
    place = f"sqlite:///{tmp_path}/lender.db"
    done("init", "--config", "program.toml", "history.csv", "--ledger", place)
    return place


class Generated:
    """The generated client: a function per path, and its models."""

    def __init__(self, folder, client):
        description = client.get("/openapi.json", "audit")
        Path(folder, "openapi.json").write_text(json.dumps(description))
        command = [Path(sys.executable).with_name("openapi-python-client"), "generate"]
        command += ["--path", "openapi.json", "--output-path", "lender_client", "--meta", "none"]
        env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)
        sys.path.insert(0, str(folder))
        self._package = import_module("lender_client")
        self.models = import_module("lender_client.models")
        self._of_role = {
            role: self._package.AuthenticatedClient(
                base_url=f"http://127.0.0.1:{client.port}", token=key, timeout=120
            )
            for role, key in client.keys.items()
        }

    def close(self):
        for client in self._of_role.values():
            client.get_httpx_client().close()

    def call(self, name, role, **given):
        """Call a path by the name of its function; it must succeed."""
        function = import_module(f"lender_client.api.default.{name}")
        answer = function.sync(client=self._of_role[role], **given)
        assert not isinstance(answer, self.models.Problem), answer
        return answer


def applications(models, rows, said):
    return models.Applications(
        [
            models.Application(
                id=row[0],
                features=models.Features(
                    income=float(row[1]), debt=float(row[2]), employed=float(row[3])
                ),
                groups=models.Groups(sex=row[5]),
                incumbent=today == "yes",
            )
            for row, today in zip(rows, said, strict=True)
        ]
    )


def known(lender, accepted, month):
    """Yield the outcomes that became known in a month, of applicants accepted before."""
    words = {"repaid": "good", "default": "bad", "not taken": "not_taken"}
    months = list(accepted)
    for age in range(3, 0, -1):
        earlier = [one for one in months if months.index(month) - months.index(one) == age]
        for one in earlier:
            rows, outcome, after = lender["people"](one, APPLICANTS)
            for row, word, when in zip(rows, outcome, after, strict=True):
                if row[0] in accepted[one] and when == age:
                    yield row[0], words[word]


def test_a_generated_client_plays_the_year(tmp_path, lender, url):
    accepted = {}
    with served(url, seconds=300.0) as client:
        year = Generated(tmp_path, client)
        models, ledger = year.models, client.service.program.ledger
        for month in [f"2031-{number:02d}" for number in range(1, 13)]:
            at = datetime.fromisoformat(f"{month}-15T09:00:00").replace(tzinfo=UTC)
            ledger.clock = lambda at=at: at
            accepted[month] = set()
            outcomes = [
                models.Outcome(id=one, outcome=models.OutcomeOutcome(word))
                for one, word in known(lender, accepted, month)
            ]
            if outcomes:
                recorded = year.call(
                    "outcomes",
                    "observe",
                    body=models.OutcomeList(outcomes),
                    idempotency_key=f"outcomes {month}",
                )
                assert sum(entry.n for entry in recorded.entries) == len(outcomes)
            if month in CHANGES:
                what, share = CHANGES[month]
                body = {} if share is None else {"body": models.Ramp(share)}
                year.call(what, "operate", idempotency_key=f"{what} {month}", **body)
            rows, *_ = lender["people"](month, APPLICANTS)
            said = lender["today"](rows)
            for first in range(0, APPLICANTS, AT_ONCE):
                part = slice(first, first + AT_ONCE)
                body = applications(models, rows[part], said[part])
                decided = year.call("decide", "decide", body=body).decisions
                accepted[month] |= {one.id for one in decided if one.decision.value == "accept"}
            again = year.call("decide", "decide", body=body).decisions
            assert again == decided  # a client that retries gets the recorded answer
        status = year.call("status", "audit").to_dict()
        assert status["certified_rounds"]
        assert status["open_round"]["round"] == 12
        name = next(iter(accepted["2031-12"]))
        assert year.call("decision", "audit", id=name).accepted
        year.close()
    found = verify(url)
    assert found.problem is None
    assert found.n_decisions == 12 * APPLICANTS
