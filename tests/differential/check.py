"""What is compared of a program: each check raises Difference. SPDX-License-Identifier: Apache-2.0"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np

import product
import sources
import tenon
import training
from program import draw_data
from reference import Run
from tenon import _core

PRECISE, ROUNDED = 2e-9, 2e-5  # of float64 and float32, as shares of the largest element


class Difference(AssertionError):
    """The product and the reference differ."""


@cache
def host(threads):
    return tenon.Host(threads=threads)


def close(what, found, wanted, share, more=0.0):
    """Compares arrays up to a share of the largest element, plus `more`."""
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    if found.shape != wanted.shape:
        raise Difference(f"{what}: shape {found.shape}; expected {wanted.shape}")
    if not wanted.size:
        return
    apart = np.abs(found - wanted)
    most = share * max(1.0, float(np.abs(wanted).max())) + more
    if not (apart <= most).all():
        place = np.unravel_index(np.argmax(np.where(np.isnan(apart), np.inf, apart)), apart.shape)
        raise Difference(f"{what}: {found[place]!r} at {[int(k) for k in place]}; expected {wanted[place]!r}, up to {most:.1e}")


def same(what, found, wanted):
    """Compares arrays bit by bit."""
    if found.shape != wanted.shape or found.tobytes() != wanted.tobytes():
        raise Difference(f"{what}: other bits: {found.ravel()[:4]} and {wanted.ravel()[:4]}")


class Check:
    """A program, its data, its reference and its layers. blunt: whether its training tells little of its end."""

    def __init__(self, program):
        self.program, self.data = program, draw_data(program)
        self.model = training.model_of(program, self.data)
        self.blunt = False

    def all(self):
        tenon.use(host(1))
        self.layers = product.Layers(self.program)
        self.first_step()
        self.texts()
        with tempfile.TemporaryDirectory() as folder:
            self.folder = Path(folder)
            self.train()
            if not max(self.costs) < training.MOST:
                return  # the parameters are leaving all bounds
            self.infer()
            self.threads()
            self.resume()
            self.shards()
            self.export()

    def _first(self):
        return next(iter(training.minibatches(self.program)))

    def _machine(self, parameters, **options):
        fixed = self.program.immutable
        return tenon.gradient_machine.new(self.layers.costs, parameters, immutable_parameters=fixed, **options)

    def first_step(self):
        """Costs and gradients of the first minibatch, in float64."""
        chosen = self._first()
        run = Run(self.program, self.model, {name: [each[k] for k in chosen] for name, each in self.data.items()})
        wanted = run.gradients()
        machine = self._machine(self.layers.parameters(self.model), compute="float64")
        machine.feed(product.feeds(self.program, self.data, chosen))
        close("cost in float64", machine.cost, run.cost().value, PRECISE)
        for layer in self.layers.costs:
            close(f"cost {layer.name} in float64", machine.output(layer), run.values[layer.name].var.value, PRECISE)
        for name in sorted(wanted):
            if name in machine.trained():
                close(f"gradient of {name} in float64", machine.gradient(name), wanted[name], PRECISE)

    def train(self):
        """Ten updates: costs of all steps, then parameters and buffers."""
        program = self.program
        self.wide = training.train(program, self.data, self.model, np.float64)
        narrow = [training.train(program, self.data, self.model, np.float32)]
        self.costs, self.trained = self._trained(self.layers)
        steps = min(self.wide.sharp, training.noisy_step(program, self.wide, narrow[0]))
        self.blunt = steps < len(self.wide.costs)
        if len(self.costs) != len(self.wide.costs):
            raise Difference(f"{len(self.costs)} steps; expected {len(self.wide.costs)}")
        try:
            self._compare_training(steps, narrow)
        except Difference:  # one training in float32 tells little of how rounding grows where it grows in each step
            narrow += [training.train(program, self.data, self.model, np.float32, nudge) for nudge in range(4)]
            if program.updater["type"] in training.NORMALISING and self._rounds_whole_gradients():
                steps, self.blunt = 0, True
            self._compare_training(steps, narrow)

    def _rounds_whole_gradients(self):
        """Returns whether some gradient of the trained model is rounding alone in the product, such as that of the shift
        of a batch_norm before another one: an updater that divides by its size makes it as large as any."""
        chosen = self._first()
        run = Run(self.program, self._trained_model(), {name: [each[k] for k in chosen] for name, each in self.data.items()})
        machine = self._machine(self.trained)
        machine.feed(product.feeds(self.program, self.data, chosen))
        gradients = run.gradients()
        most = ROUNDED * max(1.0, *(float(np.abs(each).max(initial=0)) for each in gradients.values()))
        for name in set(machine.trained()) & set(gradients):
            exact = gradients[name]
            error = np.abs(machine.gradient(name) - exact)
            if ((error > 0.02 * np.abs(exact)) & (error < most)).any():
                return True
        return False

    def _compare_training(self, steps, narrow):
        """Costs up to that step, and the end if the training got there. narrow: trainings that differ by rounding alone."""
        wide = self.wide
        for step in range(min(steps + 1, len(wide.costs))):
            if not wide.costs[step] < training.MOST:
                break
            noise = max(abs(a - b) for each in narrow for a, b in zip(each.costs[: step + 1], wide.costs, strict=False))
            close(f"cost of step {step}", self.costs[step], wide.costs[step], ROUNDED, 30 * noise)
        for name in self.trained if not self.blunt else ():
            value = wide.parameters.get(name, wide.buffers.get(name))
            others = [each.parameters.get(name, each.buffers.get(name)) for each in narrow]
            noise = max(float(np.abs(value - other).max(initial=0)) for other in others)
            close(f"{name} after {len(self.costs)} updates", self.trained[name], value, ROUNDED, 30 * noise)

    def _trained(self, layers, parameters=None, **options):
        """Trains as the program says. Returns the costs of the steps and the parameters."""
        parameters = layers.parameters(self.model) if parameters is None else parameters
        costs = []

        def handle(event):
            if isinstance(event, tenon.event.EndIteration):
                costs.append(event.cost)

        chosen = {"passes": self.program.passes, "immutable_parameters": self.program.immutable, **options}
        tenon.train(layers.costs, parameters, sources.reader(self.program, self.data, self.folder), handle,
                    batch_size=self.program.batch, updater=product.updater(self.program), **chosen)  # fmt: skip
        return costs, parameters

    def infer(self):
        """Predictions after the training, those of a loaded file, and those of a predictor that is used again."""
        feeds = product.feeds(self.program, self.data, list(range(self.program.samples)))
        named = self.program.outputs
        predictor = _core.Predictor(self.trained.core, [each._core for each in self.layers.outputs], self.program.samples, 1)
        types = tenon._model.layer.data_types(self.layers.outputs)
        fed = tenon._base.arrays.feeds({name: feeds[name] for name in types}, types)[0]
        found, again = ([_rows(tenon._base.arrays.from_core(each)) for each in predictor.predict(fed)] for _ in range(2))
        for name, a, b in zip(named, found, again, strict=True):
            same(f"{name} of a predictor that is used again", b, a)
        self._compare_outputs(named, found)
        file = self.folder / "model.safetensors"
        self.trained.save(file, self.layers.outputs)
        loaded = tenon.load(file)
        wanted = {name: feeds[name] for name in types}
        for name, a, b in zip(named, found, tenon.infer(loaded.outputs, loaded, wanted), strict=True):
            same(f"{name} of a loaded model", _rows(b), a)
        self.found = dict(zip(named, found, strict=True))

    def _trained_model(self):
        model = training.Model(self.program.seed)
        values = {name: self.trained.read(name).astype(np.float64) for name in self.trained}
        model.parameters = {name: values.get(name, each) for name, each in self.model.parameters.items()}
        model.buffers = {name: values.get(name, each) for name, each in self.model.buffers.items()}
        model.multipliers, model.reached = dict(self.model.multipliers), self.model.reached
        model.looked_up = self.model.looked_up
        return model

    def _compare_outputs(self, named, found):
        model = self._trained_model()
        self.noise = dict.fromkeys(named, np.inf)
        runs = [Run(self.program, model, self.data, dtype, training=False) for dtype in (np.float64, np.float32)]
        finite = all(np.isfinite(runs[0].values[name].var.value).all() for name in named)
        if runs[0].tape.margin < training.CLOSE or not finite:
            return
        for name, value in zip(named, found, strict=True):
            wide, narrow = (run.values[name].var.value for run in runs)
            self.noise[name] = 30 * float(np.abs(wide - narrow).max(initial=0))
            close(f"{name} after the training", value, wide, ROUNDED, self.noise[name])

    def threads(self):
        """Two threads have the same bits as one."""
        tenon.use(host(2))
        costs, parameters = self._trained(product.Layers(self.program))
        self._same_training("with two threads", costs, parameters)
        tenon.use(host(1))

    def _same_training(self, what, costs, parameters):
        same(f"costs {what}", np.array(costs), np.array(self.costs[len(self.costs) - len(costs) :]))
        for name in self.trained:
            same(f"{name} {what}", parameters.read(name), self.trained.read(name))

    def resume(self):
        """A training that is continued from a checkpoint has the same bits."""
        if self.program.passes < 2 or self.program.reader == "function":  # which cannot seek
            return
        folder = str(self.folder / "checkpoints")
        self._trained(self.layers, passes=self.program.passes // 2, checkpoint=folder)
        layers = product.Layers(self.program)
        costs, parameters = self._trained(layers, checkpoint=folder)
        self._same_training("after a resume", costs, parameters)

    def shards(self):
        """Minibatches that two devices share have the same costs and parameters but for rounding."""
        if not self.program.shards or self.blunt:
            return
        costs, parameters = self._trained(self.layers, device=["cpu", "cpu"])
        close("costs of two shards", costs, self.costs, 1e-4)
        for name in self.trained:
            close(f"{name} of two shards", parameters.read(name), self.trained.read(name), 1e-3)

    def texts(self):
        """Texts of a model of ids."""
        if self.program.texts:
            import generated

            generated.check_texts(self)

    def export(self):
        """The file of ONNX, by onnxruntime and loaded again."""
        if self.program.export:
            import exported

            exported.check_file(self)


def _rows(value):
    return np.asarray(value.values if hasattr(value, "values") else value)
