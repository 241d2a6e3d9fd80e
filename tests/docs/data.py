"""Small data in the format of Fashion-MNIST, for fast runs of examples: the label of an image is the position of its
bright band. SPDX-License-Identifier: Apache-2.0"""
import gzip
import pathlib
import struct
import sys


def write_idx(path, shape, values):
    header = struct.pack(f">BBBB{len(shape)}I", 0, 0, 8, len(shape), *shape)
    pathlib.Path(path).write_bytes(gzip.compress(header + values, compresslevel=1))


def image(label, number):
    pixels = bytearray((number * 37 + i * 11) % 40 for i in range(28 * 28))
    for i in range(2 * 28):
        pixels[(2 * label + 3) * 28 + i] = 200
    return bytes(pixels)


def write_set(images, labels, samples):
    classes = [(7 * i + i // 10) % 10 for i in range(samples)]
    write_idx(images, (samples, 28, 28), b"".join(image(label, i) for i, label in enumerate(classes)))
    write_idx(labels, (samples,), bytes(classes))


def write_fashion(folder, train=1280, test=200):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for part, samples in (("train", train), ("t10k", test)):
        write_set(folder / f"{part}-images-idx3-ubyte.gz", folder / f"{part}-labels-idx1-ubyte.gz", samples)


if __name__ == "__main__":
    write_fashion(sys.argv[1])
