"""Tables: reading and writing csv and parquet files, refused rows, and errors."""

from __future__ import annotations

import csv
import gzip
import io
import re
import resource
import sys
import zipfile
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairchance.cli.files.kinds import FoundColumn, find_columns
from fairchance.cli.files.refusals import Refusals, refused_path
from fairchance.cli.files.rows import (
    features_groups_ids,
    outcome_states,
    split_rows,
    text_columns,
)
from fairchance.cli.files.tables import (
    check_output,
    check_writable,
    read_sent,
    read_table,
    write_table,
)
from fairchance.core.groups import Attributes
from fairchance.core.sizes import zipped
from fairchance.errors import InputError
from fairchance.ledger.config import Labels, Roles
from fairchance.people.cells import truth_values
from fairchance.people.features import FeatureColumns
from sentences import one_sentence

LONG = "x" * 1_500_000  # longer than the blocks in which pyarrow reads


@pytest.fixture
def file(tmp_path):
    """Write bytes to a csv file and return its name."""

    def write(content, name="people.csv"):
        (tmp_path / name).write_bytes(content)
        return str(tmp_path / name)

    return write


def refused(words, function, *arguments, **options):
    with pytest.raises(InputError) as caught:
        function(*arguments, **options)
    assert words in str(caught.value)
    assert one_sentence(str(caught.value))


# Reading


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"id,x\n007,1\n8,2\n", {"id": ["007", "8"], "x": [1, 2]}),
        (b"\xef\xbb\xbfid,x\r\n007,1\r\n8,2\r\n", {"id": ["007", "8"], "x": [1, 2]}),
        (b"id,x\r007,1\r8,2", {"id": ["007", "8"], "x": [1, 2]}),
        (b'id,x\n"a\nb",1\n"c,""d""",2\n', {"id": ["a\nb", 'c,"d"'], "x": [1, 2]}),
        (b"id,x\n\n007,1\n\n8,2\n\n", {"id": ["007", "8"], "x": [1, 2]}),
        (f"id,x\n{LONG},1\n".encode(), {"id": [LONG], "x": [1]}),
        (b"id,x\n1,\n2,NA\n3,-4.5\n", {"id": ["1", "2", "3"], "x": [None, None, -4.5]}),
        (b'id,x\nNA,""\n,b\n', {"id": ["NA", None], "x": [None, "b"]}),
        ("id,x\nJürgen,名\n".encode(), {"id": ["Jürgen"], "x": ["名"]}),
        (b"id,x\n1e5,1e5\n", {"id": ["1e5"], "x": [100000.0]}),
        (b"'=id,x\n'=1,'=1\n'x,''+1\n", {"=id": ["=1", "'x"], "x": ["=1", "'+1"]}),
    ],
)
def test_values_of_a_csv_file(file, content, expected):
    assert read_table(file(content), text=["id", "=id"]).to_pydict() == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "people.csv"),
        (b"\xef\xbb\xbf\r\n", "people.csv"),
        (b"id,x", "'id', 'x'"),
        (b"id,x\n", "'id', 'x'"),
        (b"id,x\n1,2\n3\n", "line 3 values for 1"),
        (b"id,x\n89,1\n8\n", "line 3 values for 1"),
        (b'id,x\n"a\n8",1\n\n8,1,2\n', "line 5 values for 3"),
        (f"id,x\n{LONG},1\n8\n".encode(), "line 3 values for 1"),
        (b'id,x\n"1,2\n3,4\n', "line 2 "),
        ("id,x\na,1\nJürgen,2\n".encode("latin-1"), "line 3 holds the byte 0xfc"),
        ("id,x\n1,2\n".encode("utf-16"), "utf-8"),
        ("id,x\n1,2\n".encode("utf-16-le"), "utf-8"),
        (b"PK\x03\x04\x14\x00\x06", "utf-8"),
        (b"PAR1\x15\x04\x00", "utf-8"),
        (gzip.compress(b"id,x\n1,2\n", mtime=0), "utf-8"),
        (b"\0\0", "line 1 holds the byte 0x00"),
        (b"# of May\nid,x\n1,2\n", "line 2 values for 2"),
        (b"id,x\n1,2\n3,\x004\n", "line 3 holds the byte 0x00"),
        (b"id,x,id\n1,2,3\n", "'id'"),
        (b",id\n5,1\n", "number 1"),
        (b"id;x|y\n1;2\n", "both semicolons and bars"),
        (b"id;x\n1;2\n3;4;5\n", "';'"),
        (b"id;x\n1;2\n3;1,500\n", "'1,500' in 'x'"),
        (b"id;x\n1;2\n3;1.500\n", "'1.500' in 'x'"),
        (b"id;x;y\n1;2,5;3.25\n", "'2,5' in 'x' and '3.25' in 'y'"),
        (b"i" * (2**20 + 1) + b",x\n1,2\n", "1,048,576 bytes"),
        (
            b",".join(b"c%d" % i for i in range(1001)) + b"\n" + b"1," * 1000 + b"1\n",
            "the most is 1,0",
        ),
    ],
)
def test_invalid_csv_files(file, content, words):
    refused(words, read_table, file(content), text=["id"])


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("id;x\n007;1,5\n8;2\n", {"x": [1.5, 2.0]}),
        ("id;x\n007;1.5\n8;2\n", {"x": [1.5, 2.0]}),
        ("id\tx\ty\n007\t1,500\t0,5\n8\t-2,25\t1e3\n", {"x": [1.5, -2.25], "y": [0.5, 1000]}),
        ('id;x\n007;"a;b, c"\n8;1,5 m\n', {"x": ["a;b, c", "1,5 m"]}),
        ("id;x\n007;NA\n8;1,5\n", {"x": [None, 1.5]}),
        ("id;x\n007;1.234,5\n8;2\n", {"x": ["1.234,5", "2"]}),  # refused later, as it was
        ('"id";"x, y"\n007;2\n8;3\n', {"x, y": [2, 3]}),
        ('"id","x; y"\n007,2\n8,3\n', {"x; y": [2, 3]}),
    ],
)
def test_semicolons_and_decimal_commas(file, content, expected):
    table = read_table(file(content.encode()), text=["id"])
    assert table.to_pydict() == {"id": ["007", "8"], **expected}


def test_ids_with_commas_stay_text(file):
    path = file(b"id;x\n1,5;2,5\n1,6;3\n")
    assert read_table(path, text=["id"])["id"].to_pylist() == ["1,5", "1,6"]


def excel(path, *sheets, change=None):
    """Write an Excel file with a sheet for each list of rows."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for at, rows in enumerate(sheets):
        sheet = book.create_sheet(f"s{at}")
        for row in rows:
            sheet.append(row)
    if change is not None:
        change(book)
    book.save(path)
    return str(path)


EXCEL = [
    ["id", "debt", "since", "owner", "note", "at", None],
    [17, 1.5, date(2031, 1, 31), True, "x", datetime(2031, 1, 31, 5, 6), None],
    [18.0, None, datetime(2031, 2, 1), False, "-", None, None],
    [None] * 7,
]


def test_excel_files(tmp_path):
    def text(book):
        book["s0"]["E2"].value = "=1+1"
        book["s0"]["E2"].data_type = "s"  # text that begins like a formula
        book["s1"].sheet_state = "hidden"

    path = excel(tmp_path / "people.xlsx", EXCEL, [["lists"]], [], change=text)
    sent = read_sent(path, text=["id"])
    assert sent.table.to_pydict() == {
        "id": ["17", "18"],
        "debt": [1.5, None],
        "since": [date(2031, 1, 31), date(2031, 2, 1)],
        "owner": [True, False],
        "note": ["=1+1", "-"],
        "at": [datetime(2031, 1, 31, 5, 6), None],
    }
    assert sent.as_written()["debt"].to_pylist() == ["1.5", None]


def test_excel_has_the_values_of_calculated_formulas_only(tmp_path):
    rows = [["id", "x"], ["a", "=1+1"], ["b", 3]]
    path = excel(tmp_path / "people.xlsx", rows)
    refused("has formulas without values", read_table, path)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    for value, expected in ((b"<v>2</v>", [2, 3]), (b"<v></v>", [None, 3])):
        part = re.sub(rb"</f><v */?>(</v>)?", b"</f>" + value, files[sheet])
        if not expected[0]:  # as Excel stores empty text
            part = re.sub(rb'(<c r="B2")[^>]*>', rb'\1 t="str">', part)
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in {**files, sheet: part}.items():
                archive.writestr(name, content)
        assert read_table(path)["x"].to_pylist() == expected


def test_excel_files_that_are_refused(tmp_path, file):
    several = excel(tmp_path / "a.xlsx", EXCEL, [["id"], [1]])
    refused("more than one sheet with cells, 's0' and 's1'", read_table, several)
    far = excel(tmp_path / "a.xlsx", [["id"], [1], [2, None, 3]])
    refused("a value in row 3, column 3, and 1 column names", read_table, far)
    refused("a.xlsx is empty", read_table, excel(tmp_path / "a.xlsx", []))
    refused("cannot be read as an Excel file", read_table, file(b"id\n1\n", "people.xlsx"))
    half = (tmp_path / "a.xlsx").read_bytes()[:500]
    refused("cannot be read as an Excel file", read_table, file(half, "half.xlsx"))
    refused("ends in .csv or .parquet,", write_table, pa.table({"id": ["a"]}), "people.xlsx")


def test_small_files_do_not_unpack_to_gigabytes(tmp_path):
    n = 2**25 + 1
    pq.write_table(pa.table({"x": pa.repeat(1.0, n)}), tmp_path / "a.parquet")
    refused(f"unpacks to {8 * n:,}", read_table, str(tmp_path / "a.parquet"))
    words = pa.DictionaryArray.from_arrays(pa.repeat(0, 300), ["x" * 2**20])
    pq.write_table(pa.table({"x": words.cast(pa.string())}), tmp_path / "a.parquet")
    assert (tmp_path / "a.parquet").stat().st_size < 2**22
    refused("unpacks to 314,5", read_table, str(tmp_path / "a.parquet"))
    path = excel(tmp_path / "a.xlsx", [["id"]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("xl/more.xml", bytes(2**28))
    refused("unpacks to 268,", read_table, path)
    shared = f"<si><t>{'x' * 30_000}</t></si>".encode()  # one text for all cells
    rows = b"<sheetData>" + b'<row><c t="s"><v>0</v></c></row>' * 9_000 + b"</sheetData>"
    part = b'<x xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
    with zipfile.ZipFile(excel(tmp_path / "a.xlsx", [["id"]])) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["xl/worksheets/sheet1.xml"] = part.replace(b"x ", b"worksheet ") + rows + b"</worksheet>"
    files["xl/sharedStrings.xml"] = part.replace(b"x ", b"sst ") + shared + b"</sst>"
    kind = b"application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    types = b'<Override PartName="/xl/sharedStrings.xml" ContentType="%b"/></Types>' % kind
    files["[Content_Types].xml"] = files["[Content_Types].xml"].replace(b"</Types>", types)
    (tmp_path / "a.xlsx").write_bytes(zipped(files))
    refused("unpacks to 268,", read_table, path)


def test_type_of_a_column_depends_on_its_last_row_too(file):
    content = "id,x\n" + "1,2\n" * 500_000 + "1,many\n"
    assert read_table(file(content.encode()))["x"].to_pylist()[-2:] == ["2", "many"]


def test_missing_files(tmp_path, file):
    refused("there is no file", read_table, str(tmp_path / "no.csv"))
    (tmp_path / "folder.csv").mkdir()
    refused("is a folder; name a file in it", read_table, str(tmp_path / "folder.csv"))
    refused("ends in .csv or .parquet or .xlsx", read_table, file(b"id\n1\n", "people.xls"))
    refused("cannot be read as parquet", read_table, file(b"id\n1\n", "people.parquet"))
    pq.write_table(pa.table({"id": ["a"] * 100}), tmp_path / "whole.parquet")
    half = (tmp_path / "whole.parquet").read_bytes()[:-20]
    refused("cannot be read as parquet", read_table, file(half, "half.parquet"))


def test_parquet_keeps_types_and_drops_the_pandas_index(tmp_path):
    table = pa.table(
        {
            "id": pa.array([7, 8]),
            "x": pa.array([1.5, None]),
            "word": pa.array(["b", None]).dictionary_encode(),
            "money": pa.array([Decimal("1.25"), None]),
            "__index_level_0__": [0, 1],
        }
    )
    path = str(tmp_path / "people.parquet")
    pq.write_table(table, path)
    result = read_table(path, text=["id"])
    assert result.to_pydict() == {
        "id": ["7", "8"],
        "x": [1.5, None],
        "word": ["b", None],
        "money": [1.25, None],
    }
    assert [str(value) for value in result.schema.types] == ["string", "double", "string", "double"]


def test_text_columns_are_read_exactly(tmp_path):
    """Integers with gaps are floating point in pandas; other numbers have no unique text."""
    path = str(tmp_path / "people.parquet")
    pq.write_table(pa.table({"id": [7.0, None, float("nan")], "x": [1, 2, 3]}), path)
    assert read_table(path, text=["id"])["id"].to_pylist() == ["7", None, None]
    for value in (7.5, 2.0**53, float("inf")):
        pq.write_table(pa.table({"id": [7.0, value]}), path)
        words = "'id' of people.parquet"
        refused(words, read_table, path, text=["id"])


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"id,x\n007,1\n")))
    assert read_table("-", text=["id"]).to_pydict() == {"id": ["007"], "x": [1]}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    refused("standard input is empty", read_table, "-")


# Writing


RISKY = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
BREAKS = (";", "\r", "\n")  # where some spreadsheets begin a new cell, also inside quotes
words = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=6)
quotes, signs = st.sampled_from(["", "'", "''"]), st.sampled_from(RISKY)
cells = st.one_of(
    words,
    st.builds("{}{}{}".format, quotes, signs, words),
    st.builds("{}{}{}{}{}".format, words, st.sampled_from(BREAKS), quotes, signs, words),
)


@settings(max_examples=150)
@given(st.lists(st.tuples(cells, st.integers(-9, 9)), min_size=1, max_size=8))
def test_text_survives_a_round_trip_and_is_no_formula(tmp_path_factory, rows):
    path = str(tmp_path_factory.mktemp("out") / "out.csv")
    text, numbers = [row for row, _ in rows], [value for _, value in rows]
    write_table(pa.table({"=SUM(1)": text, "n": numbers}), path)
    back = read_table(path, text=["=SUM(1)"])
    assert back["=SUM(1)"].to_pylist() == [item or None for item in text]
    assert back["n"].to_pylist() == numbers
    with open(path, encoding="utf-8", newline="") as file:
        header, *cells = csv.reader(file)
    assert header == ["'=SUM(1)", "n"]
    assert not any(part.startswith(RISKY) for cell, _ in cells for part in cell.split(";"))
    assert [int(number) for _, number in cells] == numbers


@pytest.mark.parametrize("sign", RISKY)
def test_no_formula_begins_inside_a_cell(sign, tmp_path):
    path = str(tmp_path / "out.csv")
    text = [f"{sign}1", f"x;{sign}1;'{sign}2", f"x\n{sign}1"]
    write_table(pa.table({"t": text}), path)
    with open(path, encoding="utf-8", newline="") as file:
        _, *cells = csv.reader(file)
    assert not any(part.startswith(RISKY) for (cell,) in cells for part in re.split("[;\n]", cell))
    assert read_table(path, text=["t"])["t"].to_pylist() == text


def test_only_text_gets_an_apostrophe(tmp_path):
    path = tmp_path / "out.csv"
    kinds = {"i": [-1], "f": [-0.5], "t": ["-1"], "c": pa.array(["=1"]).dictionary_encode()}
    write_table(pa.table(kinds), str(path))
    assert path.read_text() == '"i","f","t","c"\n-1,-0.5,"\'-1","\'=1"\n'


def test_standard_output(capsysbinary):
    write_table(pa.table({"id": ["a", None], "x": [1.0, 2.5]}), "-")
    assert capsysbinary.readouterr().out == b'"id","x"\n"a",1\n,2.5\n'


def test_parquet_is_written_unchanged(tmp_path):
    table = pa.table({"id": ["=1", "'=1"], "x": [1, 2]})
    write_table(table, str(tmp_path / "out.parquet"))
    assert read_table(str(tmp_path / "out.parquet")).equals(table)


def test_unwritable_paths(tmp_path):
    refused("ends in .csv or .parquet", check_output, str(tmp_path / "out.txt"))
    refused("out.txt", check_output, str(tmp_path / "out.txt"))
    refused("a folder that does not exist", check_output, str(tmp_path / "no" / "out.csv"))
    (tmp_path / "out.csv").mkdir()
    refused(
        "is a folder, and a table is written to a file", check_output, str(tmp_path / "out.csv")
    )


def test_write_check_leaves_files_unchanged(tmp_path):
    (tmp_path / "out.csv").write_text("before")
    check_writable(str(tmp_path / "out.csv"))
    check_writable("-")
    assert [value.name for value in tmp_path.iterdir()] == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "before"
    longest = tmp_path / f"{'x' * 250}.csv"  # too long for what is written beside it
    check_output(str(longest))
    refused("cannot be written (File name too long)", check_writable, str(longest))


def test_full_disk_leaves_the_file_unchanged(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(InputError, match=r"cannot be written .*; choose another place"):
            write_table(pa.table({"id": ["x" * 50] * 50}), str(path))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_values_that_csv_cannot_hold(tmp_path):
    table = pa.table({"id": [["a", "b"]]})
    refused("cannot be written", write_table, table, str(tmp_path / "out.csv"))
    assert list(tmp_path.iterdir()) == []


# Refused rows


def test_refused_rows_keep_their_columns_and_all_reasons(tmp_path):
    table = pa.table({"id": ["a", "b", "c"], "reason": ["to buy", "=1", ""]})
    result = Refusals(table, table["id"].to_pylist())
    path = tmp_path / "no.csv"
    result.write(str(path))
    result.stop("people.csv")
    assert (len(result), path.exists()) == (0, False)
    result.add([2, 1], "pending")
    result.add([1], "infinite", "x")
    assert [(one.row, one.id, [each.code for each in one.mistakes]) for one in result] == [
        (2, "b", ["pending", "infinite"]),
        (3, "c", ["pending"]),
    ]
    assert result.usable.tolist() == [True, False, False]
    result.write(str(path))
    with open(path, newline="") as file:
        assert [row[:3] for row in csv.reader(file)] == [
            ["id", "reason", "reason_code_refused"],
            ["b", "'=1", "pending, infinite"],
            ["c", "", "pending"],
        ]
    refused("people.csv, row 2 (id 'b')", result.stop, "people.csv")


def test_path_of_refused_rows(tmp_path):
    assert refused_path(None, "-") == "input.refused.csv"
    assert refused_path(None, "in/people.parquet") == "people.refused.csv"
    words = "refused rows would replace the input"
    refused(words, refused_path, str(tmp_path / "a.csv"), str(tmp_path / "a.csv"))
    refused("ends in .csv or .parquet", refused_path, "no.txt", "a.csv")


def test_row_numbers_of_pandas_are_not_a_column(file):
    people = pd.DataFrame({"id": ["007", "8"], "x": [1, 2]})
    people.to_csv(path := file(b""))
    assert read_table(path, text=["id"]).to_pydict() == {"id": ["007", "8"], "x": [1, 2]}


ROLES = Roles("id", "outcome", groups=("sex",), features=("x", "word"))
COLUMNS = FeatureColumns(("x", "word"), ("word",), "<f8")


def reasons(content, file, *, columns=COLUMNS, roles=ROLES, **options):
    table = read_table(file(content), text=text_columns(roles, columns))
    usable, result = split_rows(table, roles, columns, **options)
    assert usable.num_rows == table.num_rows - len(result)
    return {
        refusal.row: [(one.code, one.column, one.value) for one in refusal.mistakes]
        for refusal in result
    }


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("b,m,1.5,w", None),
        ("b,m, +1e3 ,w", None),
        ("b,m,-.5,w", None),
        ("b,m,,w", [("missing", "x", "")]),
        ("b,m,NA,w", [("missing", "x", "")]),
        ("b,m,inf,w", [("infinite", "x", "")]),
        ("b,m,many,w", [("not_a_number", "x", "many")]),
        ('b,m,"1,5",w', [("formatted", "x", "1,5")]),
        ("b,m,1'200,w", [("formatted", "x", "1'200")]),
        ("b,m,12 %,w", [("formatted", "x", "12 %")]),
        ("b,m,0x10,w", [("not_a_number", "x", "0x10")]),
        (f"b,m,{'9' * 500}z,w", [("not_a_number", "x", "9" * 100)]),
        ("b,m,1,", [("missing", "word", "")]),
        (f"b,m,1,{'w' * 1001}", [("too_long", "word", "1,001")]),
        (",m,1,w", [("no_id", "id", "")]),
        ("   ,m,1,w", [("no_id", "id", "")]),
        (f"{'i' * 201},m,1,w", [("too_long", "id", "201")]),
        ("a,m,1,w", [("twice", "id", "2")]),
        ("b,,1,w", [("no_group", "sex", "")]),
        ("b,x,1,w", [("unknown_group", "", "x")]),
        (
            ",,many,",
            [
                *(("no_id", "id", ""), ("no_group", "sex", "")),
                *(("not_a_number", "x", "many"), ("missing", "word", "")),
            ],
        ),
    ],
)
def test_reasons_of_refused_rows(file, row, found):
    """A second row has text instead of a number, so that the column is read as text."""
    known, _ = Attributes.of(["f", "m"], 2)
    content = f"id,sex,x,word\na,f,2,w\n{row}\nz,f,none,w\n".encode()
    result = reasons(content, file, groups=known)
    assert result.pop(3) == [("not_a_number", "x", "none")]
    if found is None:
        assert result == {}
    else:
        assert result[2] == found
        assert set(result) == ({1, 2} if row.startswith("a,") else {2})


def test_rows_equal_those_of_a_plain_loop(file):
    """Compare thousands of random rows with a check in plain Python."""
    rng = np.random.default_rng(1)
    pool = ["1", "-2.5", "", "NA", "x", "inf", "1e3", " 4 ", "1,000", "nan", "+7", "--3", "."]
    n = 3000
    ids = rng.integers(0, 4 * n, n).astype(str)
    x = rng.choice(pool, n)
    content = "id,x\n" + "".join(f'{i},"{v}"\n' for i, v in zip(ids, x, strict=True))
    roles, columns = Roles("id", "outcome"), FeatureColumns(("x",), (), "<f8")
    table = read_table(file(content.encode()), text=text_columns(roles, columns))
    usable, result = split_rows(table, roles, columns)

    def number(text):
        if text in ("", "NA"):
            return None
        try:
            value = float(text)
        except ValueError:
            return None
        return value if np.isfinite(value) else None

    counts = dict(zip(*np.unique(ids, return_counts=True), strict=True))
    expected = [number(v) is not None and counts[i] == 1 for i, v in zip(ids, x, strict=True)]
    assert 100 < sum(expected) < n - 100
    assert result.usable.tolist() == expected
    assert usable["x"].to_pylist() == [number(v) for v in x[expected]]
    assert usable["id"].to_pylist() == ids[expected].tolist()


def test_gaps_that_a_learner_accepts(file):
    content = b"id,sex,x,word\na,f,,\nb,f,NA,w\nc,f,one,w\n"
    assert set(reasons(content, file, missing=("x", "word"))) == {3}
    assert set(reasons(content, file, missing=("x",))) == {1, 3}
    assert set(reasons(content, file)) == {1, 2, 3}


def test_group_combinations_are_checked_like_the_classifier(file):
    roles, columns = Roles("id", "o", groups=("sex", "age")), FeatureColumns(("x",), (), "<f8")
    past = pa.table({"sex": ["f", "m", "m"], "age": ["old", "old", "young"]})
    known, _ = Attributes.of(past, 3)
    rows = [(s, a) for s in ("f", "m", "d") for a in ("old", "young", "mid")]
    lines = [f"{i},{s},{a},1" for i, (s, a) in enumerate(rows)]
    result = reasons(
        "\n".join(["id,sex,age,x", *lines]).encode(),
        file,
        roles=roles,
        columns=columns,
        groups=known,
    )
    for at, (s, a) in enumerate(rows, 1):
        try:
            known.read(pa.table({"sex": [s], "age": [a]}), 1)
        except InputError:
            assert result[at] == [("unknown_group", "", f"{s}, {a}")]
        else:
            assert at not in result
    assert 0 < len(result) < len(rows)


def test_usable_rows_as_input_of_a_program(file):
    content = b"note,id,x,word,sex\n=1,007,1,w,f\n=2,8,2.5,w,m\n"
    table, _ = split_rows(
        read_table(file(content), text=text_columns(ROLES, COLUMNS)), ROLES, COLUMNS
    )
    X, groups, ids = features_groups_ids(table, ROLES, COLUMNS)
    assert X.to_pydict() == {"x": [1.0, 2.5], "word": ["w", "w"]}
    assert groups.to_pydict() == {"sex": ["f", "m"]}
    assert ids.tolist() == ["007", "8"]
    assert features_groups_ids(table, Roles("id", "o"), COLUMNS)[1] is None


def test_missing_column(file):
    words = "people.csv has no column 'x' (did you mean 'X'?); it has 'id', 'X', 'word', 'sex'"
    table = read_table(file(b"id,X,word,sex\n1,2,w,f\n"))
    refused(words, split_rows, table, ROLES, COLUMNS, source="people.csv")


def test_dates_and_booleans_instead_of_numbers(file):
    columns, roles = FeatureColumns(("x", "y"), (), "<f8"), Roles("id", "o")
    result = reasons(b"id,x,y\n1,2031-01-01,true\n2,,false\n", file, columns=columns, roles=roles)
    assert result == {1: [("not_a_number", "x", "date32[day]")], 2: [("missing", "x", "")]}


def test_dates_of_a_batch(file):
    columns, roles = FeatureColumns(("x",), (), "<f8", ("x",)), Roles("id", "o")
    content = b"id,x\n1,2031-01-31\n2,2031-02-30\n3,31.1.2031\n4,NA\n5,2031-01-31T06:00+06:00\n"
    table = read_table(file(content), text=["id"])
    usable, result = split_rows(table, roles, columns, missing=("x",))
    found = [one for refusal in result for one in refusal.mistakes]
    assert {one.code for one in found} == {"not_a_date"}
    assert [one.value for one in found] == ["2031-02-30", "31.1.2031"]
    first = datetime(2031, 1, 31)
    assert usable["x"].to_pylist() == [first, None, first]
    result = reasons(b"id,x\n1,20310131\n", file, columns=columns, roles=roles)
    assert result == {1: [("not_a_date", "x", "20310131")]}


def test_named_values_are_missing(file):
    content = b"id,sex,x,word\na,?,?,?\nb,f,-9,  ? \nc,f,3,w\n"
    table = read_table(file(content), text=text_columns(ROLES, COLUMNS))
    usable, _ = split_rows(table, ROLES, COLUMNS, missing=("x", "word"), missing_values=("?", "-9"))
    assert usable["word"].to_pylist() == [None, None, "w"]
    assert np.isnan(usable["x"].to_pylist()).tolist() == [True, True, False]
    assert usable["sex"].to_pylist() == ["?", "f", "f"]  # groups are known by their labels


# What the columns of a history hold


def found(file, values, **options):
    """Return what a column with each value ten times holds."""
    lines = "".join(f"1,{value}\n" for value in values) * 10
    return find_columns(read_table(file(f"id,x\n{lines}".encode())), ["x"], **options)


@pytest.mark.parametrize(
    ("values", "kind", "described", "missing"),
    [
        (["1", "2.5", "-3"], "number", "-3 to 2.5", 0),
        (["1", "2000", "unknown"], "number", "1 to 2,000", 0),
        (["1", "NA", "x"], "number", "1 to 1", 10),
        (["1", "NA", "?"], "number", "1 to 1", 20),
        (["true", "False", "TRUE", ""], "true/false", "true: 66.7 %", 10),
        (["true", "false", "?"], "true/false", "true: 50 %", 10),
        (["a", "b", "1"], "text", "3: 1, a, b", 0),
        (["A1", "B2", "C3", "C3", "D4", "?"], "text", "4: C3, A1, B2, …", 10),
        (["01067", "?", "80331"], "text", "2: 01067, 80331", 10),
        (["0.5", "0", "10"], "number", "0 to 10", 0),
        (["yes", "no", "NA"], "text", "3: NA, no, yes", 0),
        (["2031-01-01", "1931-02-01", "NA"], "date", "1931-02-01 to 2031-01-01", 10),
        (["2031-01-01 12:30", "2030-12-31T08:00:01Z"], "date", "2030-12-31 to 2031-01-01", 0),
        (["2031-01-01", "?"], "date", "2031-01-01 to 2031-01-01", 10),
        (["2031-01-01", "soon"], "text", "2: 2031-01-01, soon", 0),
        (["1/31/2031", "2/28/2031"], "text", "2: 1/31/2031, 2/28/2031", 0),
    ],
)
def test_kinds_of_columns(file, values, kind, described, missing):
    chosen = ("x",) if "20" in values[0] else ()  # dates in any form
    columns, (column,) = found(file, values, missing=("?",), chosen=chosen)
    words = {"number": ("unknown", "x"), "text": ("NA",)}.get(kind, ())
    word = next((value for value in values if value in words), "")
    assert column == FoundColumn("x", kind, described, missing, word=word)
    texts, dates = (("x",) if kind == name else () for name in ("text", "date"))
    assert columns == FeatureColumns(("x",), texts, "<f8", dates)


def test_column_that_is_named_as_text(file):
    columns, (column,) = found(file, ["01", "02"])
    assert (columns.texts, column.kind) == ((), "number")
    table = read_table(file(b"x\n" + b"01\n02\n" * 10), text=["x"])
    columns, (column,) = find_columns(table, ["x"], texts=["x"])
    assert (columns.texts, column.values) == (("x",), "2: 01, 02")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (['"1,5"', '"2,5"'], "'1,5'"),
        (["900", "800", '"1,200"'], "'1,200'"),
        (["31.1.2031", "28.2.2031"], "'31.1.2031'"),
        (["€ 5", "6"], "'€ 5'"),
        (["", "NA"], ""),
        (["12:30", "08:00"], ""),
    ],
)
def test_features_that_cannot_be_used(file, values, shown):
    refused(shown, found, file, values, chosen=["x"])
    refused("'x'", found, file, values, chosen=["x"])


def test_columns_that_cannot_be_used_are_left_out(file):
    rows = "".join(f"{at},{1000 - at},{at**3},{at**3},n{at},{at % 3},,12:30\n" for at in range(40))
    table = read_table(file(f"id,number,loan-ID,debt,name,x,none,time\n{rows}".encode()))
    names = table.column_names[1:]
    columns, described = find_columns(table, names)
    assert columns.names == ("debt", "x")
    assert {column.name: column.left_out for column in described} == {
        "number": "identifier",
        "loan-ID": "identifier",
        "name": "identifier",
        "debt": "",
        "x": "",
        "none": "empty",
        "time": "unreadable",
    }
    assert find_columns(table, ["number", "x"], chosen=["number", "x"])[0].names == ("number", "x")
    assert find_columns(table, ["name", "x"], chosen=["name", "x"])[0].names == ("x",)
    refused("'name'", find_columns, table, ["name"], source="it")


def test_outcomes_and_booleans_are_read_by_value():
    labels = Labels(good=("repaid", "1"), bad=("0",), withdrawn=("true",))
    result = pa.chunked_array([["repaid", "1.0", " 0 "], [None, "TRUE", "Repaid", "2"]])
    states = ["good", "good", "bad", "", "withdrawn", "good", "?"]
    assert outcome_states(result, labels).tolist() == states
    result = pa.chunked_array([["1", "yes", "True", "1.0", "0", "No", "false", None, "2"]])
    assert truth_values(result).tolist() == ["yes"] * 4 + ["no"] * 3 + ["", "?"]
