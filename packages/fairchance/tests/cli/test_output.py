"""Standard output that lacks characters, is full or closed, and missing standard input."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from cli.lender_files import apply, done, people
from fairchance.cli.app import main
from fairchance.cli.output import Console, print_json, print_table, standard_streams

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")


def run(monkeypatch, stdout, *words, stdin="the usual"):
    """Run a command in this process with other streams; return its exit code and stderr."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["fairchance", *words])
        patch.setattr(sys, "stdout", stdout)
        patch.setattr(sys, "stderr", output)
        if stdin != "the usual":
            patch.setattr(sys, "stdin", stdin)
        with pytest.raises(SystemExit) as end:
            main()
    return end.value.code, output.buffer.getvalue().decode()


def narrow(encoding="cp1252"):
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding)


def text_of(stream):
    stream.flush()
    return stream.buffer.getvalue().decode(stream.encoding)


def test_characters_outside_the_encoding_are_escaped(lender, monkeypatch):
    stdout = narrow()
    assert run(monkeypatch, stdout, "status") == (0, "")
    assert r"\u03b1" in text_of(stdout)  # α


@pytest.mark.parametrize("width", [112, 80, 73, 72, 40, None])
def test_words_of_a_table_are_never_broken(monkeypatch, width):
    """73 columns is the least for these words in a table; without a terminal there is no limit."""
    monkeypatch.delenv("COLUMNS", raising=False)
    row = {
        "method": "logistic-all-labels",
        "early": "1.00 ± .00",
        "middle": ".88 ± .10",
        "late": "1.00 ± .00",
        "whole": ".62 ± .05",
        "cert > α": "–",
        "pilot > α": ".88 (2/2)",
        "TPR A": ".78",
        "TPR B": ".82",
        "explored": ".03",
    }
    console = Console(file=io.StringIO(), **({} if width is None else {"width": width}))
    print_table(console, "T", list(row), [list(row.values())])
    lines = console.file.getvalue().splitlines()
    words = " ".join(lines).replace("─", "").split()
    if width in (72, 40):  # a line for each cell
        assert max(map(len, lines)) <= width
        assert {"  early: 1.00 ± .00", "  pilot > α: .88 (2/2)"} <= {*lines}
        return
    assert sorted(words) == sorted(" ".join(["T", *row, *row.values()]).split())
    if width is None:
        assert [line for line in lines if all(value in line for value in row.values())]
    else:
        assert max(map(len, lines)) == width


def test_json_is_valid_in_any_encoding(monkeypatch):
    value = {"é": "α €", "smile": "\U0001f600"}
    for encoding in ("ascii", "cp1252", "utf-8"):
        stdout = narrow(encoding)
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stdout)
            with standard_streams():
                print_json(value)
        assert json.loads(text_of(stdout)) == value


@needs_full
def test_decisions_that_cannot_be_written_are_recorded(lender, monkeypatch):
    apply(20)
    stdout = io.TextIOWrapper(open(FULL, "wb"))  # noqa: SIM115
    code, output = run(monkeypatch, stdout, "decide", "applicants.csv", "-o", "-")
    stdout.close()
    assert code == 2
    (sentence,) = output.splitlines()
    assert "No space left on device" in sentence
    assert done("decide", "applicants.csv", "-o", "d.csv")["recorded_before"] is not None


def test_closed_pipe_gives_no_error_message(monkeypatch):
    reads, writes = os.pipe()
    os.close(reads)
    stdout = os.fdopen(writes, "w")
    assert run(monkeypatch, stdout, "--help") == (1, "")
    stdout.close()


def test_exit_code_is_kept():
    with pytest.raises(SystemExit) as end, standard_streams():
        raise SystemExit(4)
    assert end.value.code == 4


def test_closed_input(lender, monkeypatch):
    code, output = run(monkeypatch, narrow("utf-8"), "decide", "-", "-o", "d.csv", stdin=None)
    assert code == 2
    assert output == ("fairchance: standard input is closed; send a file to it, or name one.\n")


def test_nothing_is_erased_without_an_answer(lender, monkeypatch):
    applicant = people(1)["id"][0]
    words = ("erase", "--id", applicant, "--early", "--reason", "asked for")
    code, output = run(monkeypatch, narrow("utf-8"), *words, stdin=None)
    assert code == 2
    assert "nothing was erased without a confirmation; answer y, or add --yes." in output
    assert lender.standing([applicant]).persons[0] >= 0


def test_command_that_prints_nothing_needs_no_output(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with standard_streams():
        pass
    assert sys.stdout is None


def test_closed_output(lender, monkeypatch):
    code, output = run(monkeypatch, None, "export")
    assert code == 2
    assert output == "fairchance: standard output is closed; name a file.\n"
