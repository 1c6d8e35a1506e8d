"""Commands in this process and in others, for tests of both packages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

from cli.lender_files import call, done
from sentences import one_sentence

SLOW = {"numpy", "scipy", "sklearn", "pandas", "pyarrow", "altair", "sqlalchemy", "joblib"}

# Runs commands in a single process; after each, prints its exit code and the slow packages that
# are imported by then.
FRESH = """
import contextlib, io, json, sys

from fairchance.__main__ import main

slow, missing, commands = json.loads(sys.argv[1])
sys.modules |= dict.fromkeys(missing)
answers = []
for words in commands:
    sys.argv = ["fairchance", *words]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            main()
        except SystemExit as end:
            code = end.code
    there = [name for name in slow if sys.modules.get(name)]
    answers.append((code, there, output.getvalue()))
print(json.dumps(answers))
"""


def refused_with(words, *arguments, code=2):
    """Check that a command is refused with a single sentence, also in JSON."""
    result = call(*arguments)
    assert result.exit_code == code, (result.stderr, result.exception)
    assert result.stdout == ""
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("fairchance: ")]
    assert result.stderr.rstrip().endswith(line)
    sentence = one_sentence(line.removeprefix("fairchance: "))
    assert re.search(words, sentence), sentence
    assert done(*arguments, code=code)["error"]["message"] == sentence


def process(*arguments, code=None):
    command = [sys.executable, "-m", "fairchance"] if code is None else [sys.executable, "-c", code]
    return subprocess.run(
        [*command, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )


def in_a_fresh_interpreter(*commands, missing=()):
    """Return each command's exit code, the slow packages imported so far, and its output."""
    request = json.dumps([sorted(SLOW), missing, commands])
    done = subprocess.run(
        [sys.executable, "-c", FRESH, request], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)
