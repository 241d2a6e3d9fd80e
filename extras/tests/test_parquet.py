"""The reader of Parquet, with files of pyarrow. SPDX-License-Identifier: Apache-2.0"""

import sys
import unittest

import harness

try:
    import pyarrow
    from pyarrow import parquet
except ImportError:
    print("no pyarrow in this Python, which writes the files of the test")
    sys.exit(77)


class Parquet(harness.ReaderCase):
    type = "extras.parquet"

    def setUp(self):
        super().setUp()
        self.kinds = [["dog", "cat"][i % 2] for i in range(10)]
        self.table = pyarrow.table({
            "x": [i / 2 for i in range(10)], "n": pyarrow.array([-i for i in range(10)], pyarrow.int16()),
            "words": [[*range(i % 4)] for i in range(10)], "kind": self.kinds,
            "coded": pyarrow.array(self.kinds).dictionary_encode(), "flag": [i % 3 == 0 for i in range(10)],
            "pair": pyarrow.array([[i, 1] for i in range(10)], pyarrow.list_(pyarrow.float32(), 2)),
            "hole": [None if i == 7 else i for i in range(10)], "when": [None] * 10,
            "big": pyarrow.array([2**63 if i == 9 else i for i in range(10)], pyarrow.uint64())})  # fmt: skip
        parquet.write_table(self.table.slice(0, 6), self.folder / "a.parquet", row_group_size=4)
        parquet.write_table(self.table.slice(6), self.folder / "b.parquet", row_group_size=1)
        self.columns = ["x = x, n", "n: i32", "words: i64 sequence < 4", "kind", "coded", "flag", "pair"]

    def test_columns_are_slots(self):
        files = {"files": ["*.parquet"], "columns": self.columns}
        found = self.samples(files, ["x", "n", "words", "kind", "coded", "flag", "pair"])
        self.assertEqual(found["x"], [[i / 2, -i] for i in range(10)])
        self.assertEqual(found["n"], [-i for i in range(10)])
        self.assertEqual(found["words"], [[*range(i % 4)] for i in range(10)])
        self.assertEqual(found["kind"], [1 - i % 2 for i in range(10)])
        self.assertEqual(found["coded"], found["kind"])
        self.assertEqual(found["flag"], [int(i % 3 == 0) for i in range(10)])
        self.assertEqual(found["pair"], [[i, 1] for i in range(10)])

    def test_order(self):
        self.check_order({"files": ["a.parquet", "b.parquet"], "columns": self.columns, "cache_groups": 1}, "n",
                         [-i for i in range(10)])  # fmt: skip

    def test_names_are_those_of_the_model(self):
        train = {"files": ["a.parquet"], "columns": ["x = x, n", "kind"]}
        parquet.write_table(self.table.filter(pyarrow.array([kind == "dog" for kind in self.kinds])).select(["x", "n", "kind"]),
                            self.folder / "dogs.parquet")  # fmt: skip
        dogs = self.samples({**train, "files": ["dogs.parquet"]}, ["kind"], train=train, trained=["kind"])
        self.assertEqual(dogs["kind"], [1] * 5)

    def test_refusals(self):
        def refused(columns, *parts, files=("*.parquet",), code=65, slots=()):
            self.refused({"files": [*files], "columns": columns}, slots, *parts, code=code)

        refused(["x = x, hole: f32"], 'b.parquet, row 1, column "hole"', "is null")
        refused(["x = x, big: f32"], 'b.parquet, row 3, column "big"', "9223372036854775808 is beyond int64")
        refused(["x = n, n2"], 'no column "n2"', code=66)
        refused(["x = n, x: i32"], "row 0", "is the float 0", "expected an integer")
        refused(["x = n, flag: u8"], "row 1", "-1 is not of the type u8")
        refused(["x = x, when"], "expected numbers, texts or lists", code=78)
        refused(["x = x, kind"], "has texts", code=78)
        refused(["x = pair", "y = words: i64[2]"], "row 0", "has 0 numbers; expected 2", slots=["y"])
        refused(["x"], "no.parquet", "cannot be opened", files=["no.parquet"], code=66)
        (self.folder / "text.parquet").write_text("this is not a file of Parquet")
        refused(["x"], "text.parquet", files=["text.parquet"])
        content = bytearray((self.folder / "a.parquet").read_bytes())
        content[4:40] = bytes(36)
        (self.folder / "damaged.parquet").write_bytes(content)
        refused(["x = x, n"], "damaged.parquet, row group 0", files=["damaged.parquet"])

    def test_interface(self):
        self.check_interface("extras_parquet", {"files": ["a.parquet"], "columns": self.columns})


if __name__ == "__main__":
    unittest.main()
