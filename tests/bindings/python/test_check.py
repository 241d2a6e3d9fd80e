"""Options that are wrong: each an error of the library that names the call and the option.

SPDX-License-Identifier: Apache-2.0
"""

import warnings

import numpy as np
import pytest

import tenon
from models import classifier, labels, pixels

ARRAYS = {"pixel": pixels, "label": labels}


class Sgd(tenon.updater.Base):
    def update_parameter(self, name, parameter, gradient, state):
        parameter -= self.learning_rate * gradient


@pytest.fixture(scope="module")
def model():
    return classifier()


@pytest.fixture(scope="module")
def parameters(model):
    return tenon.parameters.create([model.cost, model.accuracy])


class Scale(tenon.layer.Base):
    def forward(self, x):
        return x


@pytest.mark.parametrize(
    "options",
    [{"passes": 1.5}, {"passes": "2"}, {"passes": -1}, {"passes": True}, {"seed": -1}, {"seed": 2**64}, {"seed": "a"},
     {"pass_batches": 0.5}, {"batch_size": 0}, {"device": 5}, {"feeding": 5}, {"feeding": ["pixel", "label"]},
     {"immutable_parameters": {1}}, {"immutable_parameters": 5}, {"early_stop": 5}, {"early_stop": {"patienc": 3}},
     {"early_stop": {"patience": 1.5}}, {"early_stop": {"min_delta": "a"}}, {"early_stop": {"min_delta": -1}},
     {"average": {"decay": 0.9}}, {"average": 5}, {"checkpoint": 5}, {"checkpoint": tenon.trainer.Checkpoint("x", "a")},
     {"checkpoint": tenon.trainer.Checkpoint("x", keep="a")}, {"event_handler": 5}, {"event_handler": [print, 5]},
     {"event_handler": tenon.callbacks.Progress}, {"updater": 5}, {"updater": Sgd}],
    ids=str,
)  # fmt: skip
def test_options_of_trainings(model, parameters, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [name] = options
    with pytest.raises(tenon.error.InvalidError) as caught:
        tenon.train(model.cost, parameters, ARRAYS, **options)
    assert caught.value.component and caught.value.subject and "std::" not in str(caught.value)
    assert name in f"{caught.value.component} {caught.value.subject} {caught.value}"
    assert not list(tmp_path.iterdir())


SCORE = "tenon.layer.fc(tenon.layer.data('p', tenon.data_type.dense_vector(4)), size=2)"


@pytest.mark.parametrize(
    "call",
    ["tenon.parameters.create(model.cost, seed=-1)", "tenon.parameters.create(model.cost, seed='a')",
     "tenon.parameters.create(model.cost, seed=1.5)", "tenon.parameters.create(model.cost, seed=2**64)",
     "tenon.parameters.create(None)", "tenon.parameters.create(5)", "tenon.train(None, parameters, ARRAYS)",
     "tenon.layer.fc(model.pixel, size=2, name=5)", "tenon.layer.fc(model.pixel, size=2, name='\\ud800')",
     "tenon.layer.fc(model.pixel, size=2**63)", "tenon.layer.fc(model.pixel, size=2, param=5)",
     "tenon.layer.fc(model.pixel, size=2, param={'weight': 5})", "Scale()(model.pixel, name=5)",
     "model.score.output(-1)", "model.score.output(1)", "model.score.output('a')", "model.score.find(5)",
     "tenon.gradient_machine.new(model.cost, seed=-1)", "tenon.gradient_machine.new(model.cost, max_samples=-1)",
     "tenon.gradient_machine.new(model.cost, 5)", "tenon.gradient_machine.new(model.cost, immutable_parameters={1})",
     "tenon.Host(threads='a')", "tenon.Host(threads=-1)", "tenon.Host(plugin_paths='/nope')",
     "tenon.Host(plugin_set='')", "tenon.Host(plugin_set=0)",
     "tenon.use(5)",
     "tenon.use(None)", "tenon.draw(model.cost, 5)", "tenon.check_gradient(model.score, samples=0)",
     "tenon.updater.Adam().set_learning_rate('a')", "Sgd(learning_rate='a')", "Sgd().set_learning_rate('a')",
     "Sgd().update(5)", "tenon.updater.Adam().update(5)", "parameters.copy_from({})", "parameters.save(5)",
     "tenon.load(5)", "tenon.callbacks.CSVLog(5)", "tenon.callbacks.TensorBoard(5)", "tenon.callbacks.EarlyStop(5)",
     "tenon.callbacks.EarlyStop(patience=1.5)", "tenon.callbacks.BestModel('x', 5)", "tenon.plot.Ploter('a', file=5)",
     "tenon.dataset.wikipedia.articles.new(5)", "tenon.gradient_machine.new(model.score).output(5)",
     "machine().backward({'score': 1})", "tenon.metric.new_acc().append(5)",
     "tenon.infer(model.score, parameters, pixels, batch_size=0)"],
)  # fmt: skip
def test_arguments_of_calls(model, parameters, call):
    def machine():
        made = tenon.gradient_machine.new(model.score)
        made.forward(pixels[:2])
        return made

    with pytest.raises(tenon.error.InvalidError) as caught:
        eval(call, {**globals(), "model": model, "parameters": parameters, "machine": machine})
    assert caught.value.component and caught.value.subject and "incompatible" not in str(caught.value)


@pytest.mark.parametrize(
    "call, kind",
    [("tenon.Host(plugin_paths=['/nope'])", "NotFoundError"),
     ("tenon.dataset.wikipedia.articles.new('/nope')", "NotFoundError"),
     ("tenon.draw(model.cost, '/nope/a.dot')", "FileError"), ("tenon.plot.Ploter('a').plot('/nope/a.png')", "FileError"),
     ("tenon.train(model.cost, parameters, ARRAYS, tenon.callbacks.CSVLog('/nope/a.csv'))", "FileError"),
     ("tenon.train(model.cost, parameters, ARRAYS, tenon.callbacks.TensorBoard('/dev/null'))", "FileError"),
     ("tenon.train(model.cost, parameters, ARRAYS, updater='adamm')", "NotFoundError"),
     ("parameters[0]", "NotFoundError"), ("parameters[None]", "NotFoundError"), ("parameters['nope']", "NotFoundError")],
)  # fmt: skip
def test_what_is_missing(model, parameters, call, kind):
    if "plot" in call:
        pytest.importorskip("matplotlib")
    with pytest.raises(getattr(tenon.error, kind)) as caught:
        eval(call, {**globals(), "model": model, "parameters": parameters})
    assert caught.value.component and caught.value.subject


def test_numbers_of_numpy_are_numbers(model, parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tenon.train(model.cost, parameters, ARRAYS, passes=np.int64(1), seed=np.uint64(2**64 - 1), batch_size=np.int32(64))
        Sgd(np.float32(0.5)).set_learning_rate(np.float64(0.1))


def test_a_host_without_the_standard_plugins_has_none():
    assert tenon.Host(threads=1, standard_plugins=False).plugins() == []


def test_names_of_other_frameworks_are_understood():
    for name, meant in {"swish": "silu", "linear": "fc", "clamp": "clip", "softmx": "softmax"}.items():
        with pytest.raises(AttributeError, match=f'no plugin offers a layer "{name}"; did you mean "{meant}"'):
            getattr(tenon.layer, name)
    for name, here in {"classification_cost": "cross_entropy from_logits=true", "last_seq": "sequence_pool kind=last",
                       "img_conv": "conv filters=", "Conv2d": "conv filters=", "BatchNorm2d": "batch_norm",
                       "CrossEntropyLoss": "cross_entropy", "GlobalAveragePooling2D": "pool kind=average whole=true",
                       "weight_norm": "layers have their weights to themselves"}.items():  # fmt: skip
        with pytest.raises(AttributeError, match=f'no plugin offers a layer "{name}"; in Tenon: .*{here}'):
            getattr(tenon.layer, name)
    with pytest.raises(AttributeError, match='no plugin offers an updater "AdamW"; in Tenon: adam decoupled=true'):
        tenon.updater.AdamW  # noqa: B018


def test_modules_complete_to_their_own_names():
    for module in (tenon.callbacks, tenon.trainer, tenon.parameters):
        assert set(dir(module)) == set(module.__all__)


def test_layers_of_another_host_are_named(model, parameters):
    before = tenon.host()
    try:
        tenon.use(tenon.Host(threads=1))
        for call in (lambda: tenon.layer.fc(model.hidden, size=3, name="s"), lambda: tenon.parameters.create(model.hidden)):
            with pytest.raises(tenon.error.MisuseError, match='layer "hidden" was made on another host') as caught:
                call()
            assert caught.value.subject == "hidden" and "handle" not in str(caught.value)
    finally:
        tenon.use(before)


def test_a_network_that_is_built_again_is_told_of_names():
    pixel = tenon.layer.data("pixel", tenon.data_type.dense_vector(20))
    parameters = tenon.parameters.create(tenon.layer.fc(pixel, size=2))
    again = tenon.layer.fc(pixel, size=2)
    for given in (pixels[:2], tenon.reader.arrays({"pixel": pixels})):
        with pytest.raises(tenon.error.NotFoundError, match="Automatic names.*name its layers") as caught:
            tenon.infer(again, parameters, given)
        assert caught.value.subject


def test_a_metric_among_what_is_inferred_is_named(model, parameters, tmp_path):
    parameters.save(tmp_path / "m", [model.score, model.accuracy])
    loaded = tenon.load(tmp_path / "m")
    with pytest.raises(tenon.error.InvalidError, match='"accuracy" .* is a metric, which has no output'):
        tenon.infer(loaded.outputs, loaded, pixels)


def test_what_methods_of_classes_return(model, parameters):
    class Wrong(tenon.updater.Base):
        def update_parameter(self, name, parameter, gradient, state):
            return parameter * 2

    with pytest.raises(tenon.error.InvalidError, match="update_parameter returned a value"):
        tenon.train(model.cost, parameters, ARRAYS, updater=Wrong())

    class Forgets(tenon.layer.Base):
        def forward(self, x):
            return x

        def backward(self, gradient, x):
            pass

    cost = tenon.layer.cross_entropy(Forgets()(model.score), model.cost.inputs[1], from_logits=True)
    with pytest.raises(tenon.Error, match="Forgets.backward returned None"):
        tenon.train(cost, parameters, ARRAYS)

    class Nameless(tenon.metric.Base):
        def update(self, score):
            return 1.0

        def finalize(self, total):
            return {"": 2}

    with pytest.raises(tenon.error.InvalidError, match="Nameless.finalize returned the name ''"):
        tenon.test([model.cost, Nameless()(model.score)], parameters, ARRAYS)


def test_trainers_and_metrics_show_what_they_are():
    assert repr(tenon.trainer.SGD(batch_size=8)) == "SGD(updater=None, batch_size=8)"
    assert repr(tenon.metric.auc()) == "<tenon metric auc over 0 samples>"
