"""The reader of HDF5, with files of write_hdf5.c. SPDX-License-Identifier: Apache-2.0"""

import os
import subprocess
import unittest

import harness


class Hdf5(harness.ReaderCase):
    type = "extras.hdf5"

    def setUp(self):
        super().setUp()
        subprocess.run([f"{os.environ['EXTRAS_TOOLS']}/write_hdf5", self.folder], check=True)

    def test_datasets_are_slots(self):
        datasets = ["x", "image", "label", "flag", "words = /more/words: i64 sequence < 4", "exact = x: f64"]
        for files in (["a.h5", "b.h5"], ["*.h5"], ["all.hdf5"]):
            found = self.samples({"files": files, "datasets": datasets}, ["x", "image", "label", "flag", "words"])
            self.assertEqual(found["x"], [[i / 2, 1.5] for i in range(10)])
            self.assertEqual(found["image"], [[[i, i + 1], [i + 2, i + 3]] for i in range(10)])
            self.assertEqual(found["label"], [-i for i in range(10)])
            self.assertEqual(found["flag"], [i % 2 for i in range(10)])
            self.assertEqual(found["words"], [[*range(i % 4)] for i in range(10)])

    def test_the_root_is_the_default(self):
        found = self.samples({"files": ["all.hdf5"]}, ["x", "image", "label", "flag"])
        self.assertEqual(found["label"], [-i for i in range(10)])

    def test_order(self):
        self.check_order({"files": ["a.h5", "b.h5"], "datasets": ["x", "image", "label"]}, "label", [-i for i in range(10)])
        small = {"files": ["all.hdf5"], "datasets": ["x", "label"], "cache_bytes": 0}
        self.check_order(small, "label", [-i for i in range(10)])

    def test_refusals(self):
        def refused(datasets, *parts, files=("all.hdf5",), code=65, slots=()):
            self.refused({"files": [*files], "datasets": datasets}, slots, *parts, code=code)

        refused(["x", "y = /none"], 'all.hdf5, dataset "/none"', "does not exist", code=66, slots=["y"])
        refused(["x", "y = /more/few"], "has 1 rows", 'dataset "x" has 10', slots=["y"])
        refused(["x", "y = /more/text"], "has elements that are not numbers", code=78, slots=["y"])
        refused(["x", "y = /more"], "does not exist", code=66, slots=["y"])
        refused(["x", "y = label: u8"], 'dataset "label", row 1', "-1 is not of the type u8", slots=["y"])
        refused(["x", "y = label: i32 < 5"], "row 1", "-1 is outside of the range", slots=["y"])
        refused(["x", "y = x: i32"], "row 0", "is the float", slots=["y"])
        refused(["x", "y = /more/big"], "row 9", "9223372036854775808 is beyond int64", slots=["y"])
        refused(["x", "y = label: i32 sequence"], "no lists of variable length", code=78, slots=["y"])
        refused(["x, y"], "several datasets", code=78)
        refused(["x"], "no.h5", "does not exist", files=["no.h5"], code=66)
        (self.folder / "text.h5").write_text("not a file of HDF5")
        refused(["x"], "text.h5", "is not an HDF5 file", files=["text.h5"])
        content = (self.folder / "all.hdf5").read_bytes()
        (self.folder / "short.h5").write_bytes(content[: len(content) // 2])
        refused(["x"], "short.h5", "is not an HDF5 file, or damaged", files=["short.h5"])

    def test_columns_that_nothing_needs_are_not_read(self):
        files = {"files": ["all.hdf5"]}
        train = {**files, "datasets": ["x", "y = label"]}
        found = self.samples({**files, "datasets": ["x", "y = /none"]}, ["x"], train=train)
        self.assertEqual(found["x"], [[i / 2, 1.5] for i in range(10)])

    def test_interface(self):
        self.check_interface("extras_hdf5", {"files": ["all.hdf5"], "datasets": ["x", "image", "words = /more/words"]})


if __name__ == "__main__":
    unittest.main()
