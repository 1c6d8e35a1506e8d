"""Certificates of a validation pack, recomputed with plain sums, as its readme says."""

from __future__ import annotations

import csv
import math

import pytest

from fairchance.ledger import Program


def read_rows(place):
    with place.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def evidence_of(rung, certificate, bets, chances):
    """Return the evidence of a rung, with csv and math only, as the readme says."""
    gamblers = [name.removeprefix("bet") for name in bets[0] if name.startswith("bet")]
    best, logs, alpha = 0.0, dict.fromkeys(gamblers, 0.0), float(certificate["alpha"])
    for bet in bets:
        if (bet["ladder"], bet["rung"]) != (certificate["ladder"], str(rung)):
            continue
        if int(bet["round"]) > int(certificate["through_round"]):
            continue
        persons, largest = {}, {4: 0.0, 8: 0.0}
        for at, row in enumerate(chances):
            if (row["ladder"], row["round"]) != (bet["ladder"], bet["round"]):
                continue
            p, pi = float(row["logged_chance"]), float(row[f"chance_{rung}"])
            sums = persons.setdefault(row.get("person") or f"row {at}", {4: 0.0, 8: 0.0})
            for cap in sums:
                uncovered = max(pi - cap * p, 0)
                sums[cap] -= (1 - alpha) * uncovered
                largest[cap] = max(largest[cap], min(pi / p, cap) + uncovered)
                if row["accepted"] == "true":
                    sums[cap] += min(pi / p, cap) * (alpha - float(row["bad"]))
        for name in gamblers:
            cap, share = int(name.split("_")[0]), float(bet[f"bet{name}"])
            assert (1 - alpha) * share * largest[cap] <= 0.95 + 1e-9
            logs[name] += sum(math.log(1 + share * z[cap]) for z in persons.values())
            logs[name] += float(bet[f"others{name}"])
        after = math.log(sum(map(math.exp, logs.values())) / len(logs))
        assert after == pytest.approx(float(bet["evidence"]), abs=1e-9)
        best = max(best, after)
    return best


def recomputed(place, url):
    """Recompute the certificates of a pack; return their keys, and why others are not there."""
    tables = [read_rows(place / f"{name}.csv") for name in ("certificates", "bets", "chances")]
    certificates, bets, chances = tables
    ledger = Program.open(url).ledger
    with ledger.reading(ledger.named(None)) as reader:
        granted = {e.key: e.says for e in reader.entries(kind="certificate") if "rung" in e.says}
    assert [row["certificate"] for row in certificates] == [*granted]
    known = [row for row in certificates if not row.get("not_recomputed")]
    for row in known:
        says, rungs = (
            granted[row["certificate"]],
            range(int(row["walk_from"]), int(row["rung"]) + 1),
        )
        evidence = [evidence_of(rung, row, bets, chances) for rung in rungs]
        needed = -math.log(float(row["delta_part"]))
        assert evidence[-1] == pytest.approx(says["log_wealth"], abs=1e-9)
        assert evidence[-1] == pytest.approx(float(row["evidence"]), abs=1e-9)
        assert needed == pytest.approx(says["threshold"], abs=1e-9)
        assert min(evidence) >= needed
        said = f"evidence {evidence[-1]:.2f}, needed {needed:.2f}"
        assert said in (place / "model_card.txt").read_text(encoding="utf-8")
    assert any(row["walk_from"] != row["rung"] for row in known)
    why_not = {row["certificate"]: row.get("not_recomputed") for row in certificates}
    return granted, {key: why for key, why in why_not.items() if why}
