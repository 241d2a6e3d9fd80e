"""F12: numbers, dates and files of tables as people have them. Each case is a line of docs/reports.md.

SPDX-License-Identifier: Apache-2.0
"""

import bz2
import lzma
import os

import pytest

from harness import records


def csv(*columns, files=("data.csv",), **more):
    return {"type": "csv", "files": list(files), "columns": list(columns), **more}


def test_signs_of_numbers(scratch):
    """Decimal commas with points between thousands and an exponent, in quotes: 1.234,5 is 1234.5"""
    scratch.write("data.csv", 'a;b\n"1.234,5";2\n-0,25;1e1\n1.000.000;3,5E-1\n')
    fed = scratch.fed(csv("a: f32", "b: f32", delimiter=";", decimal=",", thousands="."), ["a", "b"])
    assert fed == {"a": [1234.5, -0.25, 1e6], "b": [2, 10, pytest.approx(0.35)]}


def test_narrow_spaces_between_thousands(scratch):
    """Thousands with a narrow no-break space, as French spreadsheets write them"""
    scratch.write("data.csv", "a\n1\u202f050\n12\n")
    assert scratch.fed(csv("a: f32", thousands="\u202f"), ["a"])["a"] == [1050, 12]


def test_percent_and_currency(scratch):
    """A percent or a currency sign is refused with file, line, column and value"""
    for text in ("12 %", "$3.50", "3 EUR"):
        scratch.write("data.csv", f"a,label\n1,0\n{text},1\n")
        message = scratch.refusal(csv("x = a: f32", "label: i32 < 2"))
        assert 'data.csv: line 3: column "a"' in message and text in message, message


def test_true_and_false(scratch):
    """True and false as pandas writes them are categories; as numbers they are refused, and the message names the type"""
    scratch.write("data.csv", "a,b\nTrue,1\nFalse,0\nTrue,1\n")
    assert scratch.fed(csv("b: f32", "a: category"), ["b", "a"])["a"] == [1, 0, 1]
    message = scratch.refusal(csv("x = a: f32", "label = b: i32 < 2"))
    assert 'line 2: column "a"' in message and "True" in message


def test_excel_separator_line(scratch):
    """Excel's first line "sep=;" is a title: skip_lines = 1"""
    scratch.write("data.csv", "\ufeffsep=;\r\na;b\r\n1;2\r\n3;4\r\n")
    assert scratch.fed(csv("a: f32", delimiter=";", skip_lines=1), ["a"])["a"] == [1, 3]


def test_dates_of_other_forms(scratch):
    """Dates with two digits of the year, names of months and twelve hours, by their form"""
    scratch.write("data.csv", "when\n03-Feb-99 01:30 PM\n29-Feb-24 12:05 AM\n")
    fed = scratch.fed(csv("when: date(%d-%b-%y %I:%M %p) year month day hour minute"), ["when"])
    assert fed["when"] == [[1999, 2, 3, 13, 30], [2024, 2, 29, 0, 5]]


def test_days_that_are_not(scratch):
    """30 February is refused with its line, not taken for 1 March"""
    scratch.write("data.csv", "when,label\n2023-02-28,0\n2023-02-30,1\n")
    message = scratch.refusal(csv("x = when: date year month day", "label: i32 < 2"))
    assert 'line 3: column "when"' in message and "2023-02-30" in message


@pytest.mark.parametrize("name, pack", [("data.csv.bz2", bz2.compress), ("data.csv.xz", lzma.compress)])
def test_compressed(scratch, name, pack):
    """bzip2 and xz are read whatever the name says, above most_kept_bytes from a temporary file"""
    scratch.write("data.csv", pack(("a\n" + "".join(f"{i}\n" for i in range(2000))).encode()))
    for kept in (1 << 20, 0):
        assert scratch.fed(csv("a: f32", most_kept_bytes=kept), ["a"])["a"] == list(range(2000))


def test_cut_off_download(scratch):
    """A compressed file whose download ended early is damaged, not short"""
    data = bz2.compress(os.urandom(3000).hex().encode())
    scratch.write("data.csv", data[: len(data) // 2])
    assert "the compressed data ends in the middle" in scratch.refusal(csv("x = a: f32", "label: i32 < 2"))


def test_home_and_patterns(scratch):
    """Files of "~/part-*.csv", in the order of their bytes"""
    for number in (2, 10, 1):
        scratch.write(f"part-{number}.csv", f"a\n{number}\n")
    os.environ["HOME"], before = str(scratch.folder), os.environ["HOME"]
    try:
        assert scratch.fed(csv("a: f32", files=["~/part-*.csv"]), ["a"])["a"] == [1, 10, 2]
    finally:
        os.environ["HOME"] = before


def test_lists_of_several_signs(scratch):
    """A list in a field, with a separator of its own and empty parts at its ends"""
    scratch.write("data.csv", "n,tags\n1,red|green\n2,\n3,green\n")
    assert scratch.fed(csv("n: f32", "tags: category list(|) multihot"), ["n", "tags"])["tags"] == [[1, 1], [0, 0], [1, 0]]


def test_hint_of_the_delimiter(scratch):
    """A table with tabs or bars that is read with commas: the message names the delimiter"""
    for sign, shown, code in (("\t", "\\t", 65), ("|", "|", 78)):
        scratch.write("data.csv", sign.join(["a", "label"]) + "\n" + sign.join(["1", "0"]) + "\n")
        message = scratch.refusal(csv("x = a: f32", "label: i32 < 2"), code=code)
        assert "delimiter" in message and shown in message, message


def test_libsvm_from_zero(scratch):
    """libsvm with ids from 0: the message names first_id, which reads it"""
    scratch.write("data.svm", "1 0:0.5 2:1\n0 1:2\n")
    reader = {"type": "libsvm", "files": ["data.svm"], "classes": 2}
    layers = [("score fc features", {"size": 2}), ("cost cross_entropy score,label", {"from_logits": True})]
    assert "first_id = 0" in scratch.refusal(reader, layers=layers)
    scratch.job({**reader, "first_id": 0}, layers)
    scratch.run("train", "job.toml")


def test_windows_over_a_change_of_clocks(scratch):
    """Hourly rows with a missing hour: no window reaches over the gap, with masks the hour is marked"""
    hours = [0, 1, 2, 4, 5, 6]
    scratch.write("data.csv", "when,y\n" + "".join(f"2024-03-31T{hour:02}:00,{hour}\n" for hour in hours))
    reader = csv("past = y..y: f32", targets=["next = y"], window=2, order_by="when", step="1h")
    layers = [("guess fc past", {"size": 1}), ("cost square_error guess,next", {}), ("seen scale_shift past", {})]
    scratch.job(reader, layers, outputs=["cost", "seen"])
    scratch.run("train", "job.toml")
    seen = [row["seen"] for row in records(scratch.run("infer", "job.toml", "--reader", "train", "--output", "seen"))]
    seen = [[each[0] if isinstance(each, list) else each for each in row] for row in seen]
    assert [0, 1] in seen and [2, 4] not in seen and [4, 5] in seen


def test_labels_of_pandas(scratch):
    """Classes 0.0 and 1.0, as pandas writes whole numbers beside a missing value"""
    scratch.write("data.csv", "a,label\n1,0.0\n2,\n3,1.0\n")
    reader = csv("x = a: f32", "label: i32 < 2 missing skip")
    scratch.job(reader)
    scratch.run("train", "job.toml")
