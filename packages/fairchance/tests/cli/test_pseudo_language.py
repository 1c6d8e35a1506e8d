"""Nothing is read out of our sentences: in another language all codes and numbers are the same."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest

from cli import short_lives
from cli.short_lives import differences, for_programs
from pseudo_language import translated


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Return what commands answer in our language and in another."""
    found = []
    for options in ([], ["--pseudo"]):
        folder = tmp_path_factory.mktemp("lives")
        subprocess.run([sys.executable, short_lives.__file__, folder, *options], check=True)
        found.append(json.loads((folder / "answers.json").read_text(encoding="utf-8")))
    return found


def test_answers_are_the_same_in_another_language(answers):
    found = [f"{place}: {one} / {other}" for place, one, other in differences(*answers)]
    assert not found, "\n".join(text[:300] for text in found[:40])


def test_a_life_has_answers_of_all_kinds(answers):
    codes = {answer["code"] for answer in answers[0]["certified"].values() if "code" in answer}
    assert codes == {0, 2, 4}
    assert len(answers[0]["certified"]) > 100


SOURCE = '''
"""A docstring of many words stays as it is."""
import re
ADVICE = "observe the outcomes of {option} first"
QUERY = "SELECT name FROM entries WHERE number = 1"

def light(n):
    text = f"{n:>3} outcomes of the round are missing"
    return {"light": "red" if PARSED in text else "green", "message": text}
'''


@pytest.mark.parametrize(("parsed", "caught"), [("are missing", True), ("", False)])
def test_code_that_parses_a_sentence_is_caught(parsed, caught):
    answers = []
    for tree in (ast.parse(SOURCE), translated(SOURCE)):
        names = {"PARSED": parsed}
        exec(compile(tree, "planted", "exec"), names)
        answers.append(names)
    plain, other = answers
    assert [*differences(for_programs(plain["light"](3)), for_programs(other["light"](3)))] == (
        [("/light", "red", "green")] if caught else []
    )
    assert other["light"](3)["message"].startswith("[  3 oouuttccoommeess ooff")
    assert other["ADVICE"] == "[oobbsseerrvvee tthhee oouuttccoommeess ooff {option} ffiirrsstt]"
    assert (other["QUERY"], other["__doc__"]) == (plain["QUERY"], plain["__doc__"])
