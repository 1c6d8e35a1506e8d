"""What the verdict says, of results that are known: one file of sentences."""

from __future__ import annotations

from dataclasses import replace

from experiments.known_results import crafted, exact, explored, record, with_failures
from fairchance_lab.experiments import words
from fairchance_lab.experiments.verdict import find_verdict

SENTENCES = (
    *(words.takeaway, words.exploration, words.earned, words.mistakes, words.loser),
    *(words.certificate, words.in_groups, words.by_group, words.precision),
)
MANY = {
    "plain": (300, 30),
    "no-exploration": (150, 10),
    "greedy-aligned": (900, 140),
    "ceiling": (400, 40),
}


def cases():
    """Yield a name and results for each thing that can be said."""
    yield "exploring pays, and greedy breaks α", explored(exact(MANY), "plain")
    without = exact(MANY | {"no-exploration": (600, 60)})
    yield "exploring does not pay", explored(without, "plain")
    yield "one method", exact({"plain": (200, 20)})
    yield "one repetition", crafted({"plain": 100, "no-exploration": 50}, size=(1, 8))
    yield "too few repetitions", exact({"plain": (100, 10), "both-fair": (50, 5)}, repetitions=4)
    yield "a bound that is not kept", exact({"plain": (100, 30)})
    yield "no one accepted", exact({"plain": (0, 0), "both-fair": (100, 90)})
    groups = exact({"plain": ([300, 50], [24, 15])}, groups=["old", "young"])
    yield "a group above α", groups
    results = exact({"plain": (200, 20), "certified": (100, 10)}, repetitions=5, rounds=4)
    yield (
        "a certificate that is far",
        replace(results, certificates=(record(1, "pilot"), record(4, "pilot", 430.0))),
    )
    results.count("n_certified")[0, 1, :3, 2:] = 1000
    yield "a certificate", replace(results, certificates=(record(4, "certified"),))
    yield "failures", with_failures(exact(MANY), "plain", (2, 5))


def test_sentences(golden):
    text = ""
    for name, results in cases():
        verdict = find_verdict(results)
        said = [write(verdict) for write in SENTENCES]
        said = filter(None, [*said, words.beyond(results, verdict), *words.failures(results)])
        text += "\n".join([f"# {name}", *said, "", ""])
    golden("verdicts", text)
