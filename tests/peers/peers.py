#!/usr/bin/env python3
"""The peer test: layers, costs and updaters compute what PyTorch computes, by the rows of the folder table. Use:
peers.py DRIVER [TYPE...]; with types, only their rows. The driver is a program, or driver.py, which computes with the
Python package. Each row is drawn from a seed of its own and evaluated by
PyTorch in float64, with automatic differentiation for gradients; Tenon computes it in float32 and in float64.

Tolerance of an element: a factor times max(1, the largest expected magnitude of its array): 2e-5 in float32, 1e-9 in
float64, 1e-6 for what is stored as float32 (parameters after a step). A row may multiply these.
Exits with 77 if this Python has no PyTorch. SPDX-License-Identifier: Apache-2.0
"""
import json
import math
import random
import subprocess
import sys

try:
    import torch
except ImportError:
    print(f"{sys.executable} has no PyTorch; scripts/install-packages test installs Debian's")
    sys.exit(77)

import steps
import table
import wrong
from rows import Row

COMPUTE = {"float32": 2e-5, "float64": 1e-9}
STORED = 1e-6


def texts(values):
    """Numbers as the driver reads them: JSON has none that are not finite."""
    return [value if math.isfinite(value) else str(value) for value in values]


def flat(tensor):
    return tensor.detach().double().flatten().tolist()


class Mismatch(Exception):
    pass


def compare(what, expected, got, tolerance):
    """Compares flat lists; `expected` is a tensor, None stands for zeros."""
    wanted = flat(expected)
    got = [0.0] * len(wanted) if got is None else [float(value) for value in got]
    if len(got) != len(wanted):
        raise Mismatch(f"{what}: expected shape {list(expected.shape)}, got {len(got)} values")
    finite = [abs(value) for value in wanted if math.isfinite(value)]
    allowed = tolerance * max([1.0, *finite])
    bad = [i for i, (a, b) in enumerate(zip(wanted, got, strict=True))
           if not (a == b or abs(a - b) <= allowed or (math.isnan(a) and math.isnan(b)))]
    if bad:
        place, rest = [], bad[0]
        for extent in reversed(expected.shape):
            place.insert(0, rest % extent)
            rest //= extent
        raise Mismatch(f"{what} at {place}: expected {wanted[bad[0]]:.9g}, got {got[bad[0]]:.9g}; "
                       f"{len(bad)} of {len(wanted)} elements differ")


class LayerCheck:
    """One row of a layer: what PyTorch computes, and the comparison with answers of the driver."""

    def __init__(self, row):
        self.row = row
        source = random.Random(f"{row} {row.torch}")
        self.inputs, self.leaves, self.parameters = [], {}, {}
        names = {"torch": torch, "F": torch.nn.functional, "math": math, "steps": steps}
        for name, draw in row.inputs.items():
            names[name] = None if draw is None else self.input(name, draw, source)
            if draw is None:
                self.inputs.append(None)
        for name, draw in {**row.parameters, **row.buffers}.items():
            values = draw.values(source)
            names[name] = torch.tensor(values, dtype=torch.float64).reshape(draw.shape)
            names[name].requires_grad_(row.training and name in row.parameters)
            self.parameters[name] = {"shape": list(draw.shape), "values": values}
        result = eval(row.torch, names)
        self.outputs = list(result) if isinstance(result, (list, tuple)) else [result]
        self.buffers = {name: names[name] for name in row.buffers}
        self.gradients = [[source.gauss(0, 1) for _ in range(output.numel())] if output.requires_grad else None
                          for output in self.outputs]
        self.expected = self.backward({name: names[name] for name in row.parameters})

    def input(self, name, draw, source):
        values = draw.values(source)
        given = {"shape": list(draw.shape), "values": values}
        if draw.limit is not None:
            given["limit"] = draw.limit
            tensor = torch.tensor(values, dtype=torch.int64).reshape(draw.shape)
        else:
            tensor = torch.tensor(values, dtype=torch.float64).reshape(draw.shape).requires_grad_(self.row.training)
            given["values"] = texts(values)
            self.leaves[len(self.inputs)] = name, tensor
        self.inputs.append(given)
        if draw.lengths is None:
            return tensor
        given["lengths"], given["sequence"] = list(draw.lengths), draw.sequence
        return list(tensor.split(list(draw.lengths)))

    def backward(self, parameters):
        """Gradients by input number and by name of the parameter."""
        pairs = [(output, torch.tensor(values, dtype=torch.float64).reshape(output.shape))
                 for output, values in zip(self.outputs, self.gradients, strict=True) if values is not None]
        if not pairs:
            return {}
        leaves = {**{number: tensor for number, (_, tensor) in self.leaves.items()}, **parameters}
        found = torch.autograd.grad([output for output, _ in pairs], list(leaves.values()),
                                    [gradient for _, gradient in pairs], allow_unused=True)
        return {key: torch.zeros_like(leaf) if gradient is None else gradient
                for (key, leaf), gradient in zip(leaves.items(), found, strict=True)}

    def case(self, compute):
        return {"compute": compute, "type": self.row.type, "attributes": self.row.attributes, "inputs": self.inputs,
                "parameters": self.parameters, "training": self.row.training, "gradients": self.gradients}

    def compare(self, compute, answer):
        tolerance = COMPUTE[compute] * self.row.tolerance
        if answer["metrics"]:
            expected = torch.stack([output.double().reshape(()) for output in self.outputs])
            compare("the metric", expected, answer["metrics"], tolerance)
            return
        if len(answer["outputs"]) != len(self.outputs):
            raise Mismatch(f"expected {len(self.outputs)} outputs, got {len(answer['outputs'])}")
        for number, (expected, got) in enumerate(zip(self.outputs, answer["outputs"], strict=True)):
            if list(expected.shape) != got["shape"]:
                raise Mismatch(f"output {number}: expected shape {list(expected.shape)}, got {got['shape']}")
            compare(f"output {number}", expected, got["values"], tolerance)
        present = [number for number, given in enumerate(self.inputs) if given is not None]
        for key, expected in self.expected.items():
            if key in self.leaves:
                got = answer["input_gradients"][present.index(key)]
                compare(f"the gradient of {self.leaves[key][0]}", expected, got, tolerance)
            else:
                compare(f"the gradient of {key}", expected, answer["parameter_gradients"][key], tolerance)
        for name, expected in self.buffers.items():
            compare(f"the buffer {name}", expected, answer["parameters"][name], max(tolerance, STORED))


class UpdaterCheck:
    """One row of an updater: the steps of PyTorch's optimizer, and the comparison."""

    def __init__(self, row):
        self.row = row
        source = random.Random(f"{row} {row.torch}")
        self.values = [source.gauss(0, 1) for _ in range(math.prod(row.shape))]
        self.gradients = [[source.gauss(0, 1) for _ in self.values] for _ in range(row.steps)]
        # Tenon stores parameters as float32: the first value is one.
        value = torch.tensor(self.values).double().reshape(row.shape).requires_grad_()
        names = {"torch": torch, "math": math, "p": [value]}
        optimizer = names["optimizer"] = eval(row.torch, names)
        schedule = eval(row.schedule, names) if row.schedule else None
        self.expected = []
        for gradient in self.gradients:
            value.grad = torch.tensor(gradient, dtype=torch.float64).reshape(row.shape)
            eval(row.before, names)
            if schedule:
                # A scheduler that steps before its optimizer warns, as most users do not mean it.
                optimizer._step_count = 1
                schedule.step()
            optimizer.step()
            self.expected.append(value.detach().clone())

    def case(self, compute):
        return {"compute": compute, "updater": self.row.type, "attributes": self.row.attributes,
                "shape": list(self.row.shape), "values": self.values, "gradients": self.gradients}

    def compare(self, compute, answer):
        tolerance = max(COMPUTE[compute], STORED) * self.row.tolerance
        for step, (expected, got) in enumerate(zip(self.expected, answer["steps"], strict=True), 1):
            compare(f"the parameter after step {step}", expected, got, tolerance)


def prepare(row):
    """The check of a row, or the text of what went wrong in its expression."""
    try:
        return LayerCheck(row) if isinstance(row, Row) else UpdaterCheck(row)
    except Exception as error:  # noqa: BLE001 (an expression raises any)
        return f"{type(error).__name__}: {error}"


def ask(driver, cases):
    command = [sys.executable, "-B", driver] if driver.endswith(".py") else [driver]
    done = subprocess.run(command, input=json.dumps({"cases": cases}), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{driver} failed: {done.stderr}")
    return json.loads(done.stdout)


def faults_of(check, answers):
    """Texts of what differs, at most one for each type of numbers."""
    if isinstance(check, str):
        return [check]
    found = []
    for compute, answer in answers.items():
        try:
            if "error" in answer:
                raise Mismatch(answer["error"])
            check.compare(compute, answer)
        except Mismatch as mismatch:
            found.append(f"{compute}: {mismatch}")
    return found


def offered(plugins):
    """The names of all types of layers and updaters."""
    manifests = [plugin["manifest"] for plugin in plugins if plugin.get("manifest")]
    return {kind["type"] for manifest in manifests for kind in manifest["layers"] + manifest["updaters"]}


def missing(types, rows, reasons):
    """Types without a row and without a reason, and reasons that are none."""
    tested = {row.type for row in rows}
    for name in sorted(types - tested - set(reasons)):
        yield f"{name}: no row in tests/peers/table; if PyTorch has no such thing, state that in not_in_torch.py"
    for name in sorted(set(reasons) & tested):
        yield f"{name}: has a row, and a reason in not_in_torch.py why not"
    for name in sorted(set(reasons) - types):
        yield f"{name}: is in not_in_torch.py, but no plugin offers it"


def main():
    driver, *only = sys.argv[1:]
    torch.set_num_threads(1)
    major = int(torch.__version__.split(".")[0])
    rows = [row for row in table.ROWS if getattr(row, "since", 1) <= major and (not only or row.type in only)]
    checks = [prepare(row) for row in rows + [row for row, _ in wrong.CASES]]
    able = [check for check in checks if not isinstance(check, str)]
    result = ask(driver, [check.case(compute) for check in able for compute in COMPUTE])
    answers = iter(result["answers"])
    faults = [faults_of(check, None if isinstance(check, str) else {compute: next(answers) for compute in COMPUTE})
              for check in checks]

    failures = [f"{row}: {fault}  ({row.torch})" for row, found in zip(rows, faults, strict=False) for fault in found]
    for (row, expected), found in zip(wrong.CASES, faults[len(rows):], strict=True):
        if not found or not all(expected in fault for fault in found):
            failures.append(f"the wrong row {row} ({row.torch}) must fail by \"{expected}\", found: {found}")
    if not only:
        types = offered(result["plugins"])
        failures += missing(types, table.ROWS, table.NOT_IN_TORCH)
        failures += wrong.unnoticed(missing)
    for failure in failures:
        print(failure)
    print(f"{len(rows)} rows of {len({row.type for row in rows})} types against PyTorch {torch.__version__}: "
          f"{len(failures)} failures; {len(table.NOT_IN_TORCH)} types are not in PyTorch")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
