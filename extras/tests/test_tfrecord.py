"""The reader of TFRecord, with records that an encoder of the test alone writes. SPDX-License-Identifier: Apache-2.0"""

import gzip
import struct
import unittest

import harness


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def record(data):
    size = struct.pack("<Q", len(data))
    return size + masked(size) + data + masked(data)


def varint(number):
    number &= 2**64 - 1
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def example(packed=True, **features):
    out = b""
    for name, values in features.items():
        if values and isinstance(values[0], bytes):
            kind, content = 1, b"".join(field(1, value) for value in values)
        elif values and isinstance(values[0], float):
            kind, numbers = 2, [struct.pack("<f", value) for value in values]
            content = field(1, b"".join(numbers)) if packed else b"".join(b"\x0d" + each for each in numbers)
        else:
            kind, numbers = 3, [varint(value) for value in values]
            content = field(1, b"".join(numbers)) if packed else b"".join(b"\x08" + each for each in numbers)
        out += field(1, field(1, name.encode()) + field(2, field(kind, content)))
    return field(1, out)


class TfRecord(harness.ReaderCase):
    type = "extras.tfrecord"

    def setUp(self):
        super().setUp()
        self.words = [[*range(i % 4)] for i in range(10)]
        self.kinds = [b"dog", b"cat"]
        examples = [example(i % 2 == 0, x=[i / 2, 1.5], n=[-i], words=self.words[i], kind=[self.kinds[i % 2]],
                            image=[bytes([i, 2, 3, 4])], tags=self.kinds[: i % 3]) for i in range(10)]  # fmt: skip
        self.write("a.tfrecord", examples[:6])
        self.write("b.tfrecord", examples[6:])
        self.features = ["x", "n: i32", "words: i64 sequence < 4", "kind: category", "image: u8[2,2]",
                         "tags: category sequence"]  # fmt: skip

    def write(self, name, examples):
        (self.folder / name).write_bytes(b"".join(map(record, examples)))

    def test_checksum(self):
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)

    def test_features_are_slots(self):
        found = self.samples({"files": ["*.tfrecord"], "features": self.features}, ["x", "n", "words", "kind", "image", "tags"])
        self.assertEqual(found["x"], [[i / 2, 1.5] for i in range(10)])
        self.assertEqual(found["n"], [-i for i in range(10)])
        self.assertEqual(found["words"], self.words)
        self.assertEqual(found["kind"], [1 - i % 2 for i in range(10)])
        self.assertEqual(found["image"], [[[i, 2], [3, 4]] for i in range(10)])
        self.assertEqual(found["tags"], [[1, 0][: i % 3] for i in range(10)])

    def test_first_record_has_the_types(self):
        self.write("own.tfrecord", [example(x=[float(i), 2.0], n=[i]) for i in range(3)])
        found = self.samples({"files": ["own.tfrecord"]}, ["x", "n"])
        self.assertEqual(found, {"x": [[i, 2] for i in range(3)], "n": [0, 1, 2]})

    def test_order(self):
        self.check_order({"files": ["a.tfrecord", "b.tfrecord"], "features": self.features}, "n", [-i for i in range(10)])

    def test_names_are_those_of_the_model(self):
        train = {"files": ["a.tfrecord"], "features": self.features}
        self.write("dogs.tfrecord", [example(x=[1.0, 2.0], kind=[b"dog"])] * 2)  # without what nothing needs
        dogs = self.samples({**train, "files": ["dogs.tfrecord"]}, ["kind"], train=train, trained=["kind"])
        self.assertEqual(dogs["kind"], [1, 1])

    def test_refusals(self):
        def refused(content, *parts, features=("x",), code=65):
            self.write("other.tfrecord", content) if isinstance(content, list) else (
                self.folder / "other.tfrecord").write_bytes(content)
            self.refused({"files": ["other.tfrecord"], "features": [*features]}, [], *parts, code=code)

        good = [example(x=[1.0, 2.0])] * 4
        whole = b"".join(map(record, good))
        refused([*good, example(x=[1.0])], "other.tfrecord, record 4", 'feature "x"', "has 1 numbers; expected 2")
        refused([*good, example(y=[1.0])], "record 4", 'feature "x"', "is absent")
        refused([*good, example(x=[1])], "record 4")  # an integer where floats were is one, but one number
        refused([example(x=[1.5, 2.0])], "is the float 1.5", features=["x: i32[2]"])
        refused([example(x=[5, 7])], "7 is outside of the range from 0 to 6", features=["x: i32[2] < 7"])
        refused([example(x=[b"ab"])], "has bytes", code=78)
        refused([example(x=[b"abc"])], "has 3 bytes", features=["x: f32[2]"])
        refused([example(x=[])], "has no numbers in the first record", code=78)
        refused([example(x=[0.5, 2.0])], "is the float 0.5", features=["x: u8[2]"])
        refused([*good, b"\xff\xff"], "record 4", "is not a tf.train.Example")
        refused([*good, b"\x0a\x7f"], "record 4", "ends within a field")
        refused(whole[:-1], "record 3", "the file ends within it")
        refused(whole[:-20], "record 3", "the file ends within it")
        refused(whole[: len(record(good[0])) + 5], "record 1", "the file ends within it")
        refused(b"x" + whole, "record 0", "the checksum of its length is wrong")
        damaged = bytearray(whole)
        damaged[len(whole) - 8] ^= 1
        refused(bytes(damaged), "record 3", "its checksum is wrong")
        refused(gzip.compress(whole), "is compressed with gzip", code=78)
        refused(b"", "has no records")
        self.refused({"files": ["no.tfrecord"]}, [], "no.tfrecord", code=66)
        self.refused({"files": ["no*.tfrecord"]}, [], "fits no file", code=66)

    def test_interface(self):
        self.check_interface("extras_tfrecord", {"files": ["a.tfrecord"], "features": self.features})


if __name__ == "__main__":
    unittest.main()
