"""Computes the cases of the peer test with the Python package. Reads and writes what driver.cpp does, which documents it.
SPDX-License-Identifier: Apache-2.0
"""
import json
import math
import sys

import numpy as np

import tenon
from tenon import gradient_machine

PREFIX = "layer."


def plain(values):
    """Numbers as JSON has them: those that are not finite as texts."""
    flat = np.asarray(values).ravel().tolist()
    return [value if math.isfinite(value) else str(value) for value in map(float, flat)]


def array(given, dtype):
    return np.array([float(value) for value in given["values"]]).astype(dtype).reshape(given["shape"])


class LayerCase:
    def __init__(self, given):
        self.given = given
        self.compute = given["compute"]
        self.feeds, self.names, inputs = {}, [], []
        for place, each in enumerate(given["inputs"]):
            inputs.append(None if each is None else self.data(f"input_{place}", each))
        make = getattr(tenon.layer, given["type"])
        self.layer = make(*inputs, name="layer", **nested(given["attributes"]))
        several = len(self.layer.describe().get("outputs", [])) > 1
        self.outputs = list(self.layer) if several else [self.layer]
        self.parameters = tenon.parameters.create(self.outputs, seed=1)
        lacking = {name.removeprefix(PREFIX) for name in self.parameters} - set(given["parameters"])
        if lacking:
            raise ValueError(f"the row lacks the parameter {min(lacking)}")
        for suffix, values in given["parameters"].items():
            self.parameters[PREFIX + suffix] = array(values, np.float32)

    def data(self, name, given):
        integer = "limit" in given
        dtype = "int32" if integer else "float32"
        values = array(given, dtype)
        sequence = "lengths" in given
        type = tenon.data_type.DataType(
            dtype, values.shape[1:], given.get("limit", -1), storage=tenon._core.RAGGED if sequence else 0,
            levels=int(sequence), sequence=given.get("sequence", ""))
        if sequence:
            values = tenon.Ragged(values, np.cumsum([0, *given["lengths"]]))
        self.feeds[name] = values
        self.names.append(name)
        return tenon.layer.data(name, type)

    def run(self):
        training = self.given["training"]
        machine = gradient_machine.new(
            self.outputs, self.parameters, max_samples=max(map(len, self.feeds.values()), default=1),
            compute=self.compute, training=training, data_gradients=training, given_gradients=training)
        machine.forward(self.feeds)
        metric = self.layer.role == "metric"
        answer = {"metrics": plain(list(machine.metrics.values())), "outputs": []}
        if not metric:
            for output in self.outputs:
                values = machine.output(output)
                values = values.values if isinstance(values, tenon.Ragged) else values
                answer["outputs"].append({"shape": list(values.shape), "values": plain(values)})
        self.backward(machine, answer)
        answer["parameters"] = {name.removeprefix(PREFIX): plain(self.parameters[name]) for name in self.parameters}
        return answer

    def backward(self, machine, answer):
        gradients = {}
        # Metrics answer without outputs, and a wrong row may have another number of them.
        for output, values, made in zip(self.outputs, self.given["gradients"], answer["outputs"], strict=False):
            if values is not None:
                # Of a wrong row the sizes differ, which the comparison tells.
                gradients[output] = np.resize(np.array(values, self.compute), made["shape"])
        if not gradients:
            return
        machine.backward(gradients)
        answer["input_gradients"] = [known(lambda name=name: machine.data_gradient(name)) for name in self.names]
        answer["parameter_gradients"] = {
            name.removeprefix(PREFIX): known(lambda name=name: machine.gradient(name)) for name in self.parameters}


def known(get):
    """The values that `get` returns; None if nothing depends on the thing, or it has no gradient."""
    try:
        values = get()
    except (tenon.error.NotFoundError, tenon.error.InvalidError):
        return None
    return plain(values.values if isinstance(values, tenon.Ragged) else values)


def nested(attributes):
    """Dotted names as dicts, the form of the package."""
    result = {}
    for name, value in attributes.items():
        *folders, last = name.split(".")
        place = result
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = value
    return result


def run_updater(given):
    like = tenon.layer.data("like", tenon.data_type.dense_array([]))
    weight = tenon.layer.parameter(like, shape=given["shape"], name="layer")
    parameters = tenon.parameters.create(weight, seed=1)
    parameters["layer.value"] = array(given, np.float32)
    machine = gradient_machine.new(
        weight, parameters, compute=given["compute"], training=True, given_gradients=True)
    updater = getattr(tenon.updater, given["updater"])(**nested(given["attributes"]))
    steps = []
    for gradient in given["gradients"]:
        machine.set_gradient("layer.value", array({"values": gradient, "shape": given["shape"]}, given["compute"]))
        updater.update(machine)
        steps.append(plain(parameters["layer.value"]))
    return {"steps": steps}


def answer_of(case):
    try:
        return run_updater(case) if "updater" in case else LayerCase(case).run()
    except (tenon.Error, TypeError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


def main():
    given = json.load(sys.stdin)
    tenon.use(tenon.Host(threads=1))
    json.dump({"plugins": tenon.host().plugins(), "answers": [answer_of(case) for case in given["cases"]]}, sys.stdout)


if __name__ == "__main__":
    main()
