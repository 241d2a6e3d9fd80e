"""Writes the data of the jobs: the same numbers everywhere, of integers that a generator of its own draws.
SPDX-License-Identifier: Apache-2.0
    data.py FOLDER
"""

from __future__ import annotations

import pathlib
import struct
import sys
import zlib

WORDS = ["the", "cat", "dog", "bird", "sees", "hears", "a", "small", "red", "old", "house", "sings", "under", "over", "never",
         "and", "finds", "its", "way", "home"]  # fmt: skip


class Draws:
    """Integers of the multiplicative generator of Lehmer with the modulus 2^31 - 1."""

    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = self.state * 48271 % 2147483647
        return self.state * limit // 2147483647

    def decimal(self, low, high, digits=4):
        """A number between two whole ones, with so many decimals, as text."""
        number = low * 10**digits + self.below((high - low) * 10**digits)
        return f"{'-' if number < 0 else ''}{abs(number) // 10**digits}.{abs(number) % 10**digits:0{digits}d}"


def write_table(folder, draws):
    """96 rows: numbers of four decimals, of many digits, of exponents; categories, classes, weights, dates and lists."""
    columns = ",".join(f"x{i}" for i in range(1, 17))
    rows = [f"key,day,city,tags,review,{columns},fine,tiny,y,share,positive,class,flag,sign"]
    for i in range(96):
        numbers = [draws.decimal(-2, 2) for _ in range(16)]
        fine = draws.decimal(-1, 1, 17)
        tiny = f"{draws.decimal(-9, 9, 5)}e-{3 + draws.below(4)}"
        tags = "|".join(WORDS[draws.below(6)] for _ in range(draws.below(4)))
        review = " ".join(WORDS[draws.below(len(WORDS))] for _ in range(2 + draws.below(7)))
        label = int(float(numbers[0]) * 4 + float(numbers[1]) * 3 + 20) // 10 % 4
        rest = [draws.decimal(-3, 3), "0." + f"{1 + draws.below(98):02d}", draws.decimal(1, 3), label, draws.below(2)]
        day = f"2024-{1 + draws.below(12):02d}-{1 + draws.below(28):02d}T{draws.below(24):02d}:15"
        city = ("Rome", "Oslo", "Lima", "Bern")[draws.below(4)]
        line = [i // 4, day, city, tags, review, *numbers, fine, tiny, *rest, 2 * draws.below(2) - 1]
        rows.append(",".join(map(str, line)))
    (folder / "table.csv").write_text("\n".join(rows) + "\n")
    wide = ["label," + ",".join(f"w{i}" for i in range(600))]
    wide += [",".join(map(str, [draws.below(7), *(draws.decimal(-1, 1) for _ in range(600))])) for _ in range(300)]
    (folder / "wide.csv").write_text("\n".join(wide) + "\n")


def write_arrays(folder, draws):
    """Arrays of NumPy, and images and labels in IDX files."""
    def npy(name, shape, kind, values):
        text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}"
        text += " " * (-(len(text) + 11) % 64) + "\n"
        code = {"<f4": "f", "<f8": "d", "<i4": "i"}[kind]
        body = struct.pack(f"<{len(values)}{code}", *values)
        (folder / name).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + body)

    def numbers(count, spread=64):
        return [(draws.below(4 * spread) - 2 * spread) / spread for _ in range(count)]

    npy("grid.npy", (48, 5, 6), "<f4", numbers(48 * 30))
    npy("other.npy", (48, 5, 6), "<f4", numbers(48 * 30, 999))
    npy("double.npy", (48, 7), "<f8", numbers(48 * 7, 12345))
    npy("rate.npy", (48, 1), "<f8", [float(draws.decimal(0, 3, 9)) for _ in range(48)])
    npy("picture.npy", (48, 9, 10, 4), "<f4", numbers(48 * 360, 255))
    npy("line.npy", (48, 19, 3), "<f4", numbers(48 * 57, 255))
    npy("space.npy", (48, 4, 5, 3, 2), "<f4", numbers(48 * 120, 255))
    npy("vector.npy", (48, 12), "<f4", numbers(48 * 12, 777))
    npy("mask.npy", (48, 5), "<i4", [int(draws.below(4) > 0 or i % 5 == 0) for i in range(48 * 5)])
    npy("place.npy", (48, 3), "<i4", [draws.below(6) for _ in range(48 * 3)])
    npy("kind.npy", (48,), "<i4", [draws.below(3) for _ in range(48)])
    npy("target.npy", (48, 2), "<f4", numbers(96, 321))
    images = bytes(draws.below(256) for _ in range(48 * 14 * 14))
    (folder / "images.idx").write_bytes(struct.pack(">HBBIII", 0, 8, 3, 48, 14, 14) + images)
    (folder / "labels.idx").write_bytes(struct.pack(">HBBI", 0, 8, 1, 48) + bytes(draws.below(5) for _ in range(48)))


def write_pictures(folder, draws):
    """Two folders of PNG files; the JPEG files are those beside this script."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    for place, name in enumerate(("circle", "square")):
        (folder / "pictures" / name).mkdir(parents=True, exist_ok=True)
        for number in range(10):
            wide, high = 16 + draws.below(12), 16 + draws.below(12)
            lines = b"".join(b"\x00" + bytes((3 * x + 5 * y * place + draws.below(90)) % 256 for x in range(3 * wide))
                             for y in range(high))
            head = struct.pack(">IIBBBBB", wide, high, 8, 2, 0, 0, 0)
            body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
            (folder / "pictures" / name / f"{number}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + body)
        for file in pathlib.Path(__file__).parent.glob(f"pictures/{name}*.jpg"):
            (folder / "pictures" / name / file.name).write_bytes(file.read_bytes())


def write_texts(folder, draws):
    """Lines of words with labels and tags, frames with letters, digits with their answers, and a book."""
    def sentence(least, most):
        return [WORDS[draws.below(len(WORDS))] for _ in range(least + draws.below(most - least))]

    reviews, words, tags, frames, letters, digits, answers = ([] for _ in range(7))
    for _ in range(60):
        review = sentence(1, 9)
        reviews.append(("good" if "cat" in review or "home" in review else "bad") + "\t" + " ".join(review))
        line = sentence(2, 7)
        words.append(" ".join(line))
        tags.append(" ".join(("B", "I")[word in ("small", "red", "old")] if len(word) > 3 else "O" for word in line))
        spelled = ["act"[draws.below(3)] for _ in range(1 + draws.below(3))]
        letters.append(" ".join(spelled))
        frames.append(" ".join(" ".join([letter + "_"] * (1 + draws.below(3)) + ["pause"]) for letter in spelled))
        figures = [str(draws.below(10)) for _ in range(3 + draws.below(4))]
        digits.append(" ".join(figures))
        answers.append(" ".join(reversed(figures)))
    for name, lines in {"reviews": reviews, "words": words, "tags": tags, "frames": frames, "letters": letters,
                        "digits": digits, "answers": answers, "alphabet": ["_", "a", "c", "t"], "scheme": ["B", "I", "O"],
                        "signs": [*map(str, range(10)), "<s>", "</s>"],
                        "book": [" ".join(sentence(8, 12)) for _ in range(24)]}.items():  # fmt: skip
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


def write_sparse(folder, draws):
    """Lists of queries with relevance, and clicks with ids of many values."""
    lists, sparse = [], []
    for query in range(20):
        for _ in range(1 + draws.below(6)):
            entries = " ".join(f"{column}:{draws.decimal(-1, 2)}" for column in range(1, 9) if draws.below(3))
            lists.append(f"{draws.below(3)} qid:{query} {entries}")
    for _ in range(80):
        columns = sorted({1 + draws.below(500) for _ in range(draws.below(12))})
        sparse.append(f"{draws.below(2)} " + " ".join(f"{column}:{draws.decimal(0, 1)}" for column in columns))
    limits = (300, 40, 7)
    clicks = ["user,item,shop,price,clicked"]
    clicks += [",".join(map(str, [*map(draws.below, limits), draws.decimal(0, 3), draws.below(2)])) for _ in range(200)]
    for name, lines in {"lists.svm": lists, "sparse.svm": sparse, "clicks.csv": clicks}.items():
        (folder / name).write_text("\n".join(lines) + "\n")


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate((write_table, write_arrays, write_pictures, write_texts, write_sparse)):
        part(folder, Draws(20260101 + number))


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]))
