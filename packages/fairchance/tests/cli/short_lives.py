"""Short lives of programs by command, with mistakes, and what the commands answered as data.

``python short_lives.py FOLDER [--pseudo]`` plays them with fixed dates and salts, and writes
``answers.json``; with ``--pseudo`` our sentences are in another language.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sqlite3
import sys
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from unittest import mock

if __name__ == "__main__":  # before anything of ours is imported
    sys.path.insert(0, str(Path(__file__).parents[1]))
    if "--pseudo" in sys.argv:
        from pseudo_language import Finder

        sys.meta_path.insert(0, Finder())

import pandas as pd

from cli.lender_files import CERTIFIED, PROGRAM, call, people
from fairchance.ledger import sql

FOR_READERS = {"reason", "reasons", "letter"}  # columns of tables, in words
LEDGER = "sqlite:///lender.db"
TABLES = (".csv", ".json")
# A mistake of each kind in files and options, by command. Hardly any of it is recorded.
MISTAKES = """
init history.csv
init --config missing.toml history.csv
init --config program.toml history.csv
init --config bad-alpha.toml history.csv --program other
init --config bad-key.toml history.csv --program other
init --config bad-toml.toml history.csv --program other
init --config no-column.toml history.csv --program other
init --config program.toml unknown-outcomes.csv --program other --strict
init --config program.toml all-good.csv --program other --check
init --config program.toml applicants.csv --program other --check
decide missing.csv -o out.csv
decide april.csv -o out.txt
decide april.csv -o out.csv --batch first
decide doubled.csv -o out.csv --strict
decide no-income.csv -o out.csv
decide text-income.csv -o out.csv
decide cents.csv -o out.csv
decide empty.csv -o out.csv
decide april.csv -o out.csv --program other
decide april.csv -o out.csv --most-refused 2
observe missing.csv
observe no-outcome.csv
observe strange.csv --strict
observe exchanged.csv
observe rejected.csv --strict
ramp 1.5
ramp 0.5
handover
override --id nobody --accept --reason why
override --id {accepted} --accept --reason why
override --id {accepted} --reason why
override --accept --reason why
override --id {rejected} --undo --reason why
withdraw --id {rejected}
withdraw --id nobody
hold --id nobody --reason why
release --id {accepted} --reason why
erase --id nobody --reason why --yes
erase --id {accepted} --reason why --yes
erase --reason why --yes
status --program other
status sqlite:///missing.db
status sqlite:///history.csv
status nonsense
status --late -1
report -o page.html
report -o page.txt
verify --checkpoint nonsense
verify --checkpoint 3:0000:main
verify sqlite:///missing.db
evaluate --policy nonsense
evaluate --policy "colour >= 3"
evaluate --policy "score >= 0.5" --alpha 2
evaluate --challenger missing.skops
evaluate --log history.csv
evaluate --log history.csv --column accepted=nobody
evaluate --policy "score >= 0.5" -o out.txt
audit -o history.csv
audit --policy nonsense
export -o out.xyz
export --checkpoint --entries
export --program other
""".strip().splitlines()


def play(folder):
    """Play the life of a program of each kind in a folder; return all answers."""
    answers = {}
    for kind, config in {"algorithm-1": PROGRAM, "certified": CERTIFIED}.items():
        # Mistakes do not depend on the kind.
        home = Path(folder) / kind
        home.mkdir()
        hours = count()

        def now(hours=hours):
            return datetime(2031, 1, 1, tzinfo=UTC) + timedelta(hours=next(hours))

        environment = {"FAIRCHANCE_LEDGER": LEDGER, "COLUMNS": "200", "USER": "risk"}
        with (
            mock.patch.object(sql, "_now", now),
            mock.patch("os.urandom", Random(0).randbytes),  # salts
            mock.patch.dict(os.environ, environment),
        ):
            answers[kind] = Life(home, config, with_mistakes=kind == "certified").answers
    return answers


class Life:
    """A program from its start to its audit; ``answers`` has what each command and file said."""

    def __init__(self, home, config, *, with_mistakes):
        os.chdir(home)
        self.answers = {}
        Path("program.toml").write_text(config)
        past = people(300)
        past.loc[past["income"] < -0.3, "outcome"] = ""
        past.to_csv("history.csv", index=False)
        self.run("init", "--config", "program.toml", "history.csv", "--check")
        self.run("init", "--config", "program.toml", "history.csv")
        for at, name in enumerate(["first", "second", "third"]):
            self.month(name, people(120, 1000 * (at + 1)), spoiled=3 * at)
        self.run("decide", "third.csv", "-o", "again.csv", "--batch", "third")
        self.by_hand()
        self.read()
        if with_mistakes:
            self.run("verify", "--relearn")
            self.run("audit", "-o", "pack", "--purpose", "loans")
            self.mistakes(past)
            self.tampered()
        self.read_files()

    def run(self, *words):
        """Run a command; keep its exit code and its data."""
        done = call(*words, *(() if "--entries" in words else ("--json",)))
        if not isinstance(done.exception, SystemExit | None):
            raise done.exception
        self.keep(" ".join(map(str, words)), code=done.exit_code, data=as_data(done.stdout))

    def keep(self, name, **answer):
        self.answers[f"{len(self.answers):03d} {name}"] = answer

    def month(self, name, applicants, spoiled):
        """Decide on a batch and record its outcomes, with rows that are refused."""
        sent = applicants.drop(columns="outcome").astype(object)
        sent.loc[: spoiled - 1, "income"] = "much" if spoiled else None
        sent.to_csv(f"{name}.csv", index=False)
        self.run("decide", f"{name}.csv", "-o", f"decided-{name}.csv", "--batch", name)
        decided = pd.read_csv(f"decided-{name}.csv")
        self.accepted = decided["id"][decided["decision"] == "accept"].tolist()
        self.rejected = decided["id"][decided["decision"] == "reject"].tolist()
        known = applicants[applicants["id"].isin(self.accepted)][["id", "outcome"]]
        wrong = pd.DataFrame(
            [("nobody", "repaid"), (self.rejected[0], "repaid"), (self.accepted[0], "perhaps")],
            columns=["id", "outcome"],
        )
        parts = {"early": known[:20], "all": pd.concat([known, wrong]), "last": known[-5:]}
        if name != "third":
            parts["last"] = known[-5:].assign(outcome="default")  # some are corrections
        else:
            parts.pop("all")  # most are pending
        for part, rows in parts.items():
            rows.to_csv(f"{name}-{part}.csv", index=False)
            self.run("observe", f"{name}-{part}.csv")

    def by_hand(self):
        """Override, withdraw, hold and erase."""
        yes, no = self.accepted, self.rejected
        self.run("override", "--id", no[0], "--accept", "--reason", "a guarantor")
        self.run("override", "--id", no[0], "--undo", "--reason", "another one")
        self.run("override", "--id", yes[0], "--reject", "--reason", "forged")
        self.run("withdraw", "--id", yes[-1])
        self.run("hold", "--id", yes[1], "--reason", "a case")
        self.run("erase", "--id", yes[1], "--early", "--reason", "asked", "--yes")
        self.run("release", "--id", yes[1], "--reason", "closed")
        self.run("erase", "--id", yes[1], "--early", "--reason", "asked", "--yes")

    def read(self):
        """Run all commands that read."""
        self.run("status")
        self.run("verify")
        self.run("evaluate", "--policy", "score >= 0.7", "-o", "evaluated.csv")
        self.run("export", "-o", "exported.csv")
        self.run("export", "--outcomes", "-o", "outcomes.csv")
        self.run("export", "--entries", "-o", "-")
        self.run("export", "--checkpoint")

    def mistakes(self, past):
        """Make mistakes in files and options."""
        config = Path("program.toml").read_text()
        Path("bad-alpha.toml").write_text(config.replace("alpha = 0.2", "alpha = 2"))
        Path("bad-key.toml").write_text(config.replace("seed", "sead"))
        Path("bad-toml.toml").write_text("[columns\n")
        Path("no-column.toml").write_text(config.replace('"id"', '"number"'))
        past.assign(outcome="perhaps").to_csv("unknown-outcomes.csv", index=False)
        past.assign(outcome="repaid").to_csv("all-good.csv", index=False)
        new = people(120, 9000).drop(columns="outcome")
        new.to_csv("april.csv", index=False)
        new.to_csv("applicants.csv", index=False)
        pd.concat([new, new[:2]]).to_csv("doubled.csv", index=False)
        new.drop(columns="income").to_csv("no-income.csv", index=False)
        new.assign(income="much").to_csv("text-income.csv", index=False)
        new.assign(income=100 * new["income"] + 500).to_csv("cents.csv", index=False)
        Path("empty.csv").write_text("")
        some = pd.DataFrame({"id": self.accepted})
        some.to_csv("no-outcome.csv", index=False)
        some.assign(outcome="perhaps").to_csv("strange.csv", index=False)
        some.assign(outcome="default").to_csv("exchanged.csv", index=False)
        pd.DataFrame({"id": self.rejected, "outcome": "repaid"}).to_csv("rejected.csv", index=False)
        for line in MISTAKES:
            named = line.format(accepted=self.accepted[2], rejected=self.rejected[1])
            (words,) = csv.reader([named], delimiter=" ")
            self.run(*words)

    def tampered(self):
        """Verify copies of the ledger that were changed."""
        changes = (
            "UPDATE people SET accepted = 1 - accepted WHERE person = 400",
            "UPDATE entries SET by = 'somebody' WHERE number = 2",
            "UPDATE outcomes SET state = 'bad' WHERE state = 'good'",
            "DELETE FROM entries WHERE number = 4",
            "DROP TABLE overrides",
        )
        for at, change in enumerate(changes):
            shutil.copy("lender.db", f"copy-{at}.db")
            with closing(sqlite3.connect(f"copy-{at}.db", isolation_level=None)) as database:
                database.execute(change)
            for command in ("verify", "status"):
                self.run(command, f"sqlite:///copy-{at}.db")

    def read_files(self):
        """Keep what is in the files, and all that is on record."""
        for file in sorted(Path().rglob("*")):
            if file.suffix in TABLES:
                self.keep(f"file {file}", data=as_data(file.read_text(encoding="utf-8")))
        with closing(sqlite3.connect("lender.db")) as database:
            named = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
            for (table,) in database.execute(named).fetchall():
                rows = [list(map(repr, row)) for row in database.execute(f"SELECT * FROM {table}")]
                self.keep(f"table {table}", data=rows)


def as_data(text):
    """Return what is in an output or a file, without what is for readers: JSON, or a table."""
    for read in (lambda: json.loads(text), lambda: [json.loads(s) for s in text.splitlines()]):
        with suppress(ValueError):
            return for_programs(read())
    rows = list(csv.DictReader(io.StringIO(text)))
    return [{key: row[key] for key in row.keys() - FOR_READERS} for row in rows]


def for_programs(data):
    """Return data without the sentences."""
    if isinstance(data, dict):
        return {key: for_programs(value) for key, value in data.items() if key != "message"}
    return [for_programs(value) for value in data] if isinstance(data, list) else data


def differences(one, other, place=""):
    """Yield where two answers differ, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one | other:
            yield from differences(one.get(key), other.get(key), f"{place}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(*pair, f"{place}/{at}")
    elif one != other:
        yield place, one, other


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    (folder / "answers.json").write_text(json.dumps(play(folder)))
