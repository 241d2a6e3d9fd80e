# The compositions of docs/coming-from.md give the numbers that the page states. SPDX-License-Identifier: Apache-2.0
#   compositions.py SOURCE BUILD FOLDER
# All rows are one job, whose data layers are arrays of one sample; `tenon infer` prints what the last layer of each row
# gives.
import json
import math
import os
import re
import struct
import subprocess
import sys

SOURCE, BUILD, FOLDER = sys.argv[1:4]
PAGE = os.path.join(SOURCE, "docs", "coming-from.md")
TENON = os.path.join(BUILD, "bin", "tenon")
JOB = os.path.join(FOLDER, "compositions.toml")


def run(*arguments):
    answer = subprocess.run([TENON, *arguments], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        sys.exit(f"tenon {' '.join(arguments)}: {answer.stderr}")
    return answer.stdout


def texts(cell):
    return re.findall(r"`([^`]*)`", cell)


def rows():
    """The rows of four columns: their line, layers, inputs by name, and the result."""
    with open(PAGE, encoding="utf-8") as page:
        for number, line in enumerate(page, 1):
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) == 6 and texts(cells[2]):
                inputs = {name: json.loads(value) for name, value in (t.split(" = ") for t in texts(cells[3]))}
                yield number, texts(cells[2]), inputs, json.loads(texts(cells[4])[0])


def shape(value):
    return (len(value), *shape(value[0])) if isinstance(value, list) else ()


def flat(value):
    return [number for each in value for number in flat(each)] if isinstance(value, list) else [value]


def write_array(path, value, integers):
    """One sample in NumPy's format 1.0."""
    kind, code = ("<i8", "q") if integers else ("<f4", "f")
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {(1, *shape(value))}, }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        file.write(struct.pack(f"<{len(flat(value))}{code}", *flat(value)))


def toml(text):
    """The value of an attribute, which the page writes without quotation marks."""
    if text.startswith("["):
        return "[" + ", ".join(toml(each) for each in text[1:-1].split(",")) + "]"
    return text if re.fullmatch(r"-?[\d.]+(e-?\d+)?|true|false", text) else json.dumps(text)


def layers_of(number, layers, inputs):
    """The tables of a row's layers, and the name of the last one. Names begin with the number of the line."""
    name, tables = next(iter(inputs)), []
    for place, text in enumerate(layers):
        named, _, rest = text.rpartition(" = ")
        kind, *words = rest.split()
        given = [word for word in words if "=" not in word] or [name]
        name = named or f"layer_{place}"
        tables.append(f'[[layer]]\nname = "l{number}_{name}"\ntype = "{kind}"\n'
                      f"inputs = {json.dumps([f'l{number}_{each}' for each in given])}\n")
        for setting in (word for word in words if "=" in word):
            key, value = setting.split("=", 1)
            tables.append(f"{key} = {toml(value)}\n")
    return "".join(tables), f"l{number}_{name}"


def agree(value, expected):
    return shape(value) == shape(expected) and all(
        math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-6) for a, b in zip(flat(value), flat(expected), strict=True))


def main():
    os.makedirs(FOLDER, exist_ok=True)
    expected, arrays, job = {}, [], []
    for number, layers, inputs, result in rows():
        for name, value in inputs.items():
            arrays.append(f"l{number}_{name}")
            write_array(os.path.join(FOLDER, arrays[-1] + ".npy"), value, name.startswith("id"))
        tables, last = layers_of(number, layers, inputs)
        job.append(tables)
        expected[last] = number, result
    if len(expected) < 12:
        sys.exit(f"docs/coming-from.md: only {len(expected)} compositions were found")
    # A job has a cost: that of a trained number.
    reader = f'type = "npy"\nfiles = {json.dumps([array + ".npy" for array in arrays])}\nbatch = 1\n'
    with open(JOB, "w", encoding="utf-8") as file:
        file.write(f"passes = 1\nsave = \"compositions.safetensors\"\noutputs = {json.dumps(['cost', *expected])}\n"
                   f"{''.join(job)}[[layer]]\nname = \"number\"\ntype = \"parameter\"\ninputs = \"{arrays[0]}\"\n"
                   'shape = [1]\n[[layer]]\nname = "cost"\ntype = "sum_cost"\ninputs = "number"\n'
                   f"[reader.train]\n{reader}[reader.test]\n{reader}"
                   '[updater]\ntype = "sgd"\nlearning_rate = 0\n')
    run("train", "-q", JOB)
    made = json.loads(run("infer", "-q", *(f"--output={name}" for name in expected), JOB))
    faults = 0
    for name, (number, result) in expected.items():
        if not agree(made[name], result):
            print(f"docs/coming-from.md: line {number}: the page states {result}, the layers give {made[name]}")
            faults += 1
    return 1 if faults else 0


sys.exit(main())
