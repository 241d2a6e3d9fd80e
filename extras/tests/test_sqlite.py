"""The reader of SQLite, beside Python's module sqlite3. SPDX-License-Identifier: Apache-2.0"""

import sqlite3
import struct
import unittest

import harness


class Sqlite(harness.ReaderCase):
    type = "extras.sqlite"

    def setUp(self):
        super().setUp()
        database = sqlite3.connect(self.folder / "data.db")
        database.execute("CREATE TABLE pets (x REAL, weight INTEGER, kind TEXT, image BLOB, note TEXT)")
        self.rows = [(i / 2, i * i, ["cat", "dog", "emu"][i % 3], struct.pack("<4B", i, 1, 2, 3), None) for i in range(10)]
        database.executemany("INSERT INTO pets VALUES (?, ?, ?, ?, ?)", self.rows)
        database.execute("CREATE TABLE gaps (id INTEGER PRIMARY KEY, x REAL)")
        database.executemany("INSERT INTO gaps VALUES (?, ?)", [(i * i - 50, float(i)) for i in range(10)])
        database.execute("CREATE VIEW heavy AS SELECT x, weight FROM pets WHERE weight > 9 ORDER BY x DESC")
        database.execute("CREATE TABLE keyed (name TEXT PRIMARY KEY, x REAL, weight REAL) WITHOUT ROWID")
        database.executemany("INSERT INTO keyed VALUES (?, ?, 0)", [("b", 2.0), ("a", 1.0)])
        database.execute('CREATE TABLE "odd ""name" (rowid REAL, x REAL, "sp ace" INTEGER)')
        database.execute('INSERT INTO "odd ""name" VALUES (7.5, 1.5, 3)')
        database.execute("CREATE TABLE empty (x REAL)")
        database.execute("CREATE TABLE mixed (x, y)")
        database.executemany("INSERT INTO mixed VALUES (?, ?)", [(1, 300), (2.5, "two"), (3, None)])
        database.commit()
        self.database = database
        self.addCleanup(database.close)

    def test_columns_are_slots(self):
        columns = ["x", "weight", "both = x, weight: f32", "kind: category", "image: u8[2,2]", "small = weight: u8 < 82"]
        found = self.samples({"file": "data.db", "table": "pets", "columns": columns},
                             ["x", "weight", "both", "kind", "image", "small"], "both")  # fmt: skip
        self.assertEqual(found["x"], [row[0] for row in self.rows])
        self.assertEqual(found["weight"], [row[1] for row in self.rows])
        self.assertEqual(found["both"], [[row[0], row[1]] for row in self.rows])
        self.assertEqual(found["kind"], [i % 3 for i in range(10)])
        self.assertEqual(found["image"], [[[i, 1], [2, 3]] for i in range(10)])
        self.assertEqual(found["small"], found["weight"])

    def test_rows_of_tables_views_and_queries(self):
        one, gaps = [{"columns": [f"x = x, {other}", "y = x"]} for other in ("weight", "id")]
        self.assertEqual(self.samples({"file": "data.db", "table": "gaps", **gaps}, ["y"])["y"], [float(i) for i in range(10)])
        self.assertEqual(self.samples({"file": "data.db", "table": "heavy", **one}, ["y"])["y"],
                         [row[0] for row in self.rows[:3:-1]])  # fmt: skip
        self.assertEqual(self.samples({"file": "data.db", "table": "keyed", **one}, ["y"])["y"], [1, 2])
        query = "SELECT x * 2 AS x, weight FROM pets WHERE weight > 4 ORDER BY weight DESC LIMIT 3"
        self.assertEqual(self.samples({"file": "data.db", "query": query, **one}, ["y"])["y"], [9, 8, 7])
        odd = {"columns": ["x = x, rowid", "y = sp ace"]}
        found = self.samples({"file": "data.db", "table": 'odd "name', **odd}, ["x", "y"])
        self.assertEqual(found, {"x": [[1.5, 7.5]], "y": [3]})
        self.refused({"file": "data.db", "table": "gaps", "columns": ["x = x: f32[1]"]}, [], "row 0", "expected a blob of 4")

    def test_order(self):
        attributes = {"file": "data.db", "table": "pets", "columns": ["x = x, weight", "y = weight"]}
        self.check_order(attributes, "y", [row[1] for row in self.rows])
        gaps = {"file": "data.db", "table": "gaps", "columns": ["x = x, id", "y = x"]}
        self.check_order(gaps, "y", [float(i) for i in range(10)])

    def test_names_are_those_of_the_model(self):
        train = {"file": "data.db", "table": "pets", "columns": ["x = x, weight", "kind: category"]}
        other = {"file": "data.db", "query": "SELECT * FROM pets WHERE kind = 'emu'", "columns": train["columns"]}
        self.assertEqual(self.samples(other, ["kind"], train=train, trained=["kind"])["kind"], [2, 2, 2])
        self.database.execute("UPDATE pets SET kind = 'fox' WHERE weight = 81")
        self.database.commit()
        self.job(train, ["kind"], trained=["kind"])
        message = self.tenon("infer", "job.toml", "--model", "model.safetensors", "--output", "kind_read", "--plugins",
                             harness.PLUGINS, code=65)  # fmt: skip
        self.assertIn('row 9, column "kind"', message)
        self.assertIn('the category "fox" is unknown; known: cat, dog, emu', message)

    def test_columns_that_nothing_needs_are_not_read(self):
        train = {"file": "data.db", "table": "pets", "columns": ["x = x, weight", "y = weight"]}
        new = {**train, "columns": ["x = x, weight", "y = label"]}
        self.assertEqual(self.samples(new, ["x"], train=train)["x"], [[row[0], row[1]] for row in self.rows])

    def test_refusals(self):
        def refused(attributes, *parts, code=65, slots=()):
            self.refused({"file": "data.db", "columns": ["x"], **attributes}, slots, *parts, code=code)

        refused({"table": "pet"}, "data.db", 'no table "pet"', "empty, gaps", code=66)
        refused({"table": "pets", "columns": ["x", "y"]}, 'no column "y"', "x, weight, kind", code=66)
        refused({"file": "no.db", "table": "pets"}, "no.db", "cannot be opened", code=66)
        refused({"table": "empty"}, 'the table "empty" has no rows')
        refused({"table": "mixed", "columns": ["x = x, y"]}, 'row 1, column "y"', 'is the text "two"; expected a number')
        refused({"table": "mixed", "columns": ["x = x, y: f32"]}, 'row 1, column "y"', 'is the text "two"; expected a number')
        refused({"query": "SELECT 1.5 AS x, NULL AS y", "columns": ["x = x, y: f32"]}, 'row 0, column "y"', "is NULL")
        refused({"query": "SELECT x AS a, 1 AS b FROM mixed", "columns": ["x = a, b: i32"]}, "row 1",
                "is the float 2.5", "expected an integer, i32")  # fmt: skip
        refused({"query": "SELECT 300 AS a, 1 AS b", "columns": ["x = a, b: u8"]}, "300 is not of the type u8")
        refused({"query": "SELECT 1 AS a, 5 AS b", "columns": ["x = a, b: i32 < 5"]}, "5 is outside of the range from 0 to 4")
        refused({"table": "pets", "columns": []}, "columns: has no slots", code=78)
        refused({"query": "SELECT 1 AS a, 1e300 AS b", "columns": ["x = a, b"]}, 'column "b"', "1e+300 is beyond float32")
        refused({"table": "pets", "query": "SELECT 1"}, "either a table or a query", code=78)
        refused({"query": "SELECT 1 AS x; DROP TABLE pets"}, "is not one statement", code=78)
        refused({"table": "pets", "columns": ["x = weight, weight"]}, 'slot "x" has "weight" twice', code=78)
        refused({"query": "DELETE FROM pets"}, "is not a SELECT", code=78)
        refused({"query": "SELEC 1"}, 'near "SELEC"', code=78)
        refused({"table": "pets", "columns": ["x = image"]}, "has blobs", code=78)
        refused({"table": "pets", "columns": ["x: f33"]}, '"x: f33" is not of the form', code=78)
        refused({"table": "pets", "columns": ["x", "x = weight"]}, 'two slots "x"', code=78)
        (self.folder / "text.db").write_text("this is not a database at all" * 100)
        refused({"file": "text.db", "table": "pets"}, "text.db", "not a database")
        damaged = bytearray((self.folder / "data.db").read_bytes())
        damaged[4096:] = b"\xff" * (len(damaged) - 4096)
        (self.folder / "damaged.db").write_bytes(damaged)
        refused({"file": "damaged.db", "table": "pets"}, "damaged.db", "malformed")
        self.assertEqual(self.database.execute("SELECT count(*) FROM pets").fetchone(), (10,))

    def test_interface(self):
        columns = ["x = x, weight", "kind", "image: u8[4]"]
        self.check_interface("extras_sqlite", {"file": "data.db", "table": "pets", "columns": columns})


if __name__ == "__main__":
    unittest.main()
