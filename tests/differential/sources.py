"""The samples of a program as readers: in memory, or files that are written before. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import numpy as np

import product
import tenon


def reader(program, data, folder):
    """Returns the reader of a program's setting "reader"."""
    return READERS[program.reader](program, data, folder)


def fitting(program):
    """Returns the names of the readers that can hold the data of a program."""
    kinds = [node.attributes for node in program.data()]
    dense = all(each["kind"] == "dense" and not each.get("levels") for each in kinds)
    flat = dense and all(len(each.get("shape", ())) < 2 and not ("limit" in each and each.get("shape")) for each in kinds)
    names = ["rows", "function"]
    names += ["arrays", "npy"] if dense else []
    names += ["csv"] if flat else []
    levels = [each for each in kinds if each.get("levels")]
    one = {each.get("lengths") for each in levels}
    if len(one) == 1 and all(each["levels"] == 1 for each in levels) and not program.settings.get("empty", True):
        flat_rows = all(each["kind"] == "dense" and len(each.get("shape", ())) < 2 for each in kinds)
        names += ["csv_sequences"] if flat_rows and not any("limit" in each and each.get("shape") for each in kinds) else []
    sparse = [each for each in kinds if each["kind"] == "sparse"]
    labels = [each for each in kinds if each["kind"] != "sparse"]
    if len(sparse) == 1 and len(labels) == 1 and not labels[0].get("shape") and not labels[0].get("levels"):
        names.append("libsvm")
    return names


def _samples(program, data):
    samples = []
    for k in range(program.samples):
        sample = {}
        for node in program.data():
            value = data[node.name][k]
            sample[node.name] = product.sparse(value) if node.attributes["kind"] == "sparse" else value
        samples.append(sample)
    return samples


def _rows(program, data, folder):
    return _samples(program, data)


def _function(program, data, folder):
    samples = _samples(program, data)
    types = {node.name: product.data_type(node.attributes) for node in program.data()}
    return tenon.reader.typed(lambda: iter(samples), types)


def _arrays(program, data, folder):
    return dict(data)


def _npy(program, data, folder):
    files = []
    for node in program.data():
        files.append(str(folder / f"{node.name}.npy"))
        np.save(files[-1], data[node.name])
    classes = [node.attributes.get("limit", 0) for node in program.data()]
    return tenon.reader.npy(files=files, **({"classes": classes} if any(classes) else {}))


def _columns(name, attributes):
    """Returns the names of the columns of a slot, and the slot as the reader csv describes it."""
    if not attributes.get("shape"):
        kind = f"i64<{attributes['limit']}" if "limit" in attributes else "f32"
        return [name], f"{name} = {name}: {kind}"
    names = [f"{name}_{k}" for k in range(attributes["shape"][0])]
    return names, f"{name} = {names[0]}..{names[-1]}: f32"


def _csv(program, data, folder):
    header, slots, columns = [], [], []
    for node in program.data():
        names, slot = _columns(node.name, node.attributes)
        header += names
        slots.append(slot)
        columns.append(np.reshape(data[node.name], (program.samples, -1)))
    lines = [",".join(header)]
    lines += [",".join(str(number) for part in columns for number in part[k]) for k in range(program.samples)]
    file = folder / "samples.csv"
    file.write_text("\n".join(lines) + "\n")
    return tenon.reader.csv(files=[str(file)], columns=slots)


def _csv_sequences(program, data, folder):
    header, slots, per_sample = ["sample"], [], []
    for node in program.data():
        names, slot = _columns(node.name, node.attributes)
        header += names
        slots.append(slot)
        per_sample += [] if node.attributes.get("levels") else [node.name]
    lines = [",".join(header)]
    for k in range(program.samples):
        length = max(len(data[node.name][k]) for node in program.data() if node.attributes.get("levels"))
        for row in range(length):
            fields = [str(k)]
            for node in program.data():
                value = data[node.name][k]
                fields += [str(each) for each in np.ravel(value[row] if node.attributes.get("levels") else value)]
            lines.append(",".join(fields))
    file = folder / "sequences.csv"
    file.write_text("\n".join(lines) + "\n")
    return tenon.reader.csv(files=[str(file)], columns=slots, sequence_by="sample", per_sequence=per_sample)


def _libsvm(program, data, folder):
    sparse = next(node for node in program.data() if node.attributes["kind"] == "sparse")
    label = next(node for node in program.data() if node.attributes["kind"] != "sparse")
    lines = []
    for k in range(program.samples):
        pairs = [f"{id + 1}:{number!r}" for id, number in product.sparse(data[sparse.name][k])]
        lines.append(" ".join([str(np.ravel(data[label.name][k])[0]), *pairs]))
    file = folder / "samples.libsvm"
    file.write_text("\n".join(lines) + "\n")
    read = tenon.reader.libsvm(files=[str(file)], width=sparse.attributes["width"], classes=label.attributes.get("limit", 0))
    return read.choose(**{sparse.name: "features", label.name: "label"})


READERS = {"rows": _rows, "function": _function, "arrays": _arrays, "npy": _npy, "csv": _csv,
           "csv_sequences": _csv_sequences, "libsvm": _libsvm}  # fmt: skip
