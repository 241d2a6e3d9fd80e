"""Models of ONNX by PyTorch's exporter, read, run and written, beside onnxruntime. SPDX-License-Identifier: Apache-2.0"""

import numpy as np
import onnx
import onnxruntime
import pytest

import tenon
from others import TorchModel, close, last

onnxruntime.set_default_logger_severity(3)
IMAGES = ["lenet", "vgg", "resnet"]


def run(file, images):
    session = onnxruntime.InferenceSession(file)
    return session.run(None, {session.get_inputs()[0].name: images})[0]


@pytest.mark.parametrize("suffix", ["", "_any"])
@pytest.mark.parametrize("name", ["mlp", "generator", *IMAGES])
def test_a_model_of_pytorch_gives_the_same(name, suffix):
    model = TorchModel(name, suffix)
    parameters = tenon.onnx.load(model.file)
    wanted = run(model.file, model.image)
    close(wanted, model.output)
    images = last(model.image) if name in IMAGES else model.image
    got = tenon.infer(parameters.outputs[0], parameters, images)
    close(got, last(wanted))
    first = tenon.onnx.load(model.file, channels_first=True)
    close(tenon.infer(first.outputs[0], first, model.image), wanted)


def test_no_image_is_transposed():
    """The layouts of convolutions and of the first layer after a flatten are those of the weights."""
    for name in IMAGES:
        made = tenon.onnx.load(TorchModel(name).file)
        types = [each.type for each in tenon._model.layer.in_order(made.outputs)]
        assert "transpose" not in types and "reshape" not in types


def test_layers_are_called_after_the_modules():
    made = tenon.onnx.load(TorchModel("lenet").file)
    assert {"conv1.weight", "conv2.bias", "fc1.weight", "fc3.bias"} <= set(made)
    assert list(made.outputs[0].data_types) == ["image"]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", ["mlp", "generator", *IMAGES])
def test_a_model_that_is_written_again_gives_the_same(name, first, tmp_path):
    model = TorchModel(name)
    parameters = tenon.onnx.load(model.file)
    images = last(model.image) if name in IMAGES else model.image
    wanted = tenon.infer(parameters.outputs[0], parameters, images)
    file = tmp_path / "again.onnx"
    tenon.onnx.save(parameters.outputs, parameters, file, channels_first=first)
    by_others = run(file, model.image if first else images)
    close(last(by_others) if first else by_others, wanted)
    again = tenon.onnx.load(file)
    close(tenon.infer(again.outputs[0], again, images), wanted, 1e-6)


def test_a_loaded_model_trains_and_is_saved(tmp_path):
    model = TorchModel("vgg")
    parameters = tenon.onnx.load(model.file)
    cost = tenon.layer.cross_entropy(
        parameters.outputs[0], tenon.layer.data("label", tenon.data_type.integer_value(10))
    )
    data = {"image": last(model.image), "label": np.array([1, 2, 3])}
    before = tenon.test(cost, parameters, data).cost
    tenon.train(cost, parameters, data, passes=20, updater=tenon.updater.adam(learning_rate=0.01))
    assert tenon.test(cost, parameters, data).cost < before / 2
    parameters.save(tmp_path / "model.safetensors", parameters.outputs)
    again = tenon.load(tmp_path / "model.safetensors")
    close(tenon.infer(again.outputs[0], again, data["image"]),
          tenon.infer(parameters.outputs[0], parameters, data["image"]), 1e-6)  # fmt: skip


def blocks():
    """Layers of most types that can be written."""
    layer = tenon.layer
    image = layer.data("image", tenon.data_type.dense_array([12, 10, 3]))
    x = layer.simple_img_conv_pool(image, filters=4, kernel=3, pool_kernel=2, name="first")
    x = layer.residual_block(x, filters=4, name="same")
    x = layer.residual_block(x, filters=2, stride=2, bottleneck=True, name="deep", act="leaky_relu")
    x = layer.img_conv_group(x, filters=[4, 6], batch_norm=True, pool_kernel=[2], pool_stride=[1], name="group")
    x = layer.local_response_norm(layer.resize(x, times=[3], kind="linear", align_corners=True))
    x = layer.conv_transpose(x, filters=4, kernel=[3], stride=[2], same=True, name="up")
    x = layer.conv(x, filters=4, kernel=3, stride=2, same=True, groups=2, name="down", drop_rate=0.5)
    mean = layer.pool(x, kind="average", kernel=3, stride=2, ceil=True)
    most = layer.pool(x, kind="max", kernel=3, stride=2, ceil=True)
    factor = layer.parameter(mean, shape=[1, 4], name="factor")
    x = layer.concat(mean, most, layer.gelu(mean), layer.silu(most) * 2 + 1, -mean / (most * most + 1), mean * factor)
    hidden = layer.prelu(layer.fc(x, x, size=5, act="mish", name="hidden"), name="slope")
    hidden = layer.scale_shift(layer.layer_norm(hidden, name="norm"), learnable=True, name="scaled")
    padded = layer.pad(x, before=[1], after=[0], axes=[2], mode="edge")
    return [layer.softmax(hidden, size=3, name="score"), x, layer.mean(x, axes=[1]), padded, layer.softmax(x, axis=1),
            layer.relu(layer.transpose(x, axes=[0, 3, 1, 2])), layer.reshape(x, shape=[-1])]  # fmt: skip


def fill(parameters, random):
    """Draws numbers of both signs; variances, which must not be negative, from 0.1 on."""
    for name in parameters:
        drawn = random.normal(size=parameters.shape(name))
        parameters[name] = abs(drawn) + 0.1 if name.endswith("moving_variance") else 0.5 * drawn


@pytest.mark.parametrize("first", [True, False])
def test_layers_and_blocks_are_written(first, tmp_path):
    outputs = blocks()
    parameters = tenon.parameters.create(outputs)
    random = np.random.default_rng(0)
    fill(parameters, random)
    images = random.normal(size=(2, 12, 10, 3)).astype(np.float32)
    wanted = tenon.infer(outputs, parameters, images)
    tenon.onnx.save(outputs, parameters, tmp_path / "blocks.onnx", channels_first=first)
    session = onnxruntime.InferenceSession(tmp_path / "blocks.onnx")
    results = session.run(None, {"image": np.moveaxis(images, -1, 1) if first else images})
    again = tenon.onnx.load(tmp_path / "blocks.onnx")
    for i, (got, back) in enumerate(zip(results, tenon.infer(again.outputs, again, images), strict=True)):
        image = first and i in (1, 2, 3, 4)
        close(last(got) if image else got, wanted[i])
        close(np.moveaxis(back, -1, 1) if i == 5 and back.shape != wanted[i].shape else back, wanted[i])


def test_what_has_no_operators_is_listed_and_nothing_is_written(tmp_path):
    layer = tenon.layer
    word = layer.data("word", tenon.data_type.integer_value(4))
    vector = layer.embedding(word, vocabulary=4, size=2, name="table")
    sums = layer.variance(layer.data("x", tenon.data_type.dense_vector(2)), axis=1, keep_dimensions=True, name="sums")
    words = layer.data("words", tenon.data_type.integer_value_sequence(4))
    total = layer.add(vector, sums, layer.sequence_pool(layer.embedding(words, vocabulary=4, size=2), kind="sum", name="bag"))
    parameters = tenon.parameters.create(total)
    with pytest.raises(tenon.error.UnsupportedError) as raised:
        tenon.onnx.save(total, parameters, tmp_path / "none.onnx")
    for words in ("unsupported layers: 3; nothing was written", '"words" (data): has the shape', '"bag" (sequence_pool)',
                  '"sums" (variance)'):  # fmt: skip
        assert words in str(raised.value)
    assert not (tmp_path / "none.onnx").exists()
    alone = layer.parameter(layer.data("y", tenon.data_type.dense_vector(2)), name="alone")
    with pytest.raises(tenon.error.UnsupportedError, match='"alone" .*: an output must depend on the inputs'):
        tenon.onnx.save(alone, tenon.parameters.create(alone), tmp_path / "none.onnx")
    chain = layer.fc(layer.fc(layer.data("x", tenon.data_type.dense_vector(2)), size=2, name="one"), size=2, name="two")
    with pytest.raises(tenon.error.UnsupportedError) as raised:
        tenon.onnx.save(chain, parameters, tmp_path / "none.onnx")
    assert 'has no parameter "one.weight"' in str(raised.value) and 'has no parameter "two.weight"' in str(raised.value)


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(tenon.error.NotFoundError, match="file not found"):
        tenon.onnx.load(tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("no model at all")
    with pytest.raises(tenon.error.BadDataError, match="text.onnx"):
        tenon.onnx.load(tmp_path / "text.onnx")
    (tmp_path / "empty.onnx").write_bytes(b"")
    with pytest.raises(tenon.error.BadDataError, match="the graph is empty"):
        tenon.onnx.load(tmp_path / "empty.onnx")
    with pytest.raises(tenon.error.InvalidError, match="not 3"):
        tenon.onnx.load(3)
    with pytest.raises(tenon.error.FileError):
        layer = tenon.layer.relu(tenon.layer.data("x", tenon.data_type.dense_vector(2)))
        tenon.onnx.save(layer, tenon.parameters.create(layer), tmp_path / "folder" / "none.onnx")


def test_a_file_is_a_model_of_the_checker(tmp_path):
    model = TorchModel("lenet")
    parameters = tenon.onnx.load(model.file)
    tenon.onnx.save(parameters.outputs, parameters, tmp_path / "lenet.onnx")
    made = onnx.load(tmp_path / "lenet.onnx")
    onnx.checker.check_model(made, full_check=True)
    assert made.producer_name == "tenon" and made.opset_import[0].version == 17
    bytes_of = (tmp_path / "lenet.onnx").read_bytes()
    assert set(tenon.onnx.load(bytes_of)) == set(tenon.onnx.load(made)) == set(parameters)


def named(tmp_path):
    """A trained model of the columns "height" and "weight" and the classes "cat" and "dog"; its scores, and its set."""
    (tmp_path / "train.csv").write_text("weight,height,kind\n1,2,dog\n2,1,cat\n0,2,dog\n3,1,cat\n")
    reader = tenon.reader.csv([str(tmp_path / "train.csv")], columns=["x = height, weight: f32", "kind: category"])
    score = tenon.layer.fc(tenon.layer.data("x", tenon.data_type.dense_vector(2)), size=2)
    cost = tenon.layer.cross_entropy(
        score, tenon.layer.data("kind", tenon.data_type.integer_value(2)), from_logits=True
    )
    parameters = tenon.parameters.create(cost)
    tenon.train(cost, parameters, reader.batch(2), passes=2)
    return score, parameters


def test_names_of_classes_and_columns_are_in_the_file(tmp_path):
    score, parameters = named(tmp_path)
    file = tmp_path / "named.onnx"
    tenon.onnx.save(score, parameters, file)
    assert {each.key: each.value for each in onnx.load(file).metadata_props} == {
        "tenon.columns": '{"x": ["height", "weight"]}',
        "tenon.names": '{"kind": ["cat", "dog"]}',
    }
    loaded = tenon.onnx.load(file)
    assert loaded.names() == parameters.names() == {"kind": ["cat", "dog"]}
    assert loaded.columns() == parameters.columns() == {"x": ["height", "weight"]}
    tenon.onnx.save(loaded.outputs, loaded, tmp_path / "again.onnx")
    assert tenon.onnx.load(tmp_path / "again.onnx").names() == parameters.names()
    # A reader of other data numbers and orders by them.
    (tmp_path / "new.csv").write_text("height,other,weight,kind\n5,0,6,dog\n")
    loaded.save(tmp_path / "m.safetensors", loaded.outputs)
    assert tenon.load(tmp_path / "m.safetensors").columns() == {"x": ["height", "weight"]}


@pytest.mark.parametrize("key, value, words", [
    ("tenon.names", "[1", "expected a JSON object of lists"),
    ("tenon.names", "[]", "expected a JSON object of lists"),
    ("tenon.names", '{"kind": "cat"}', "expected a JSON object of lists"),
    ("tenon.names", '{"kind": ["cat", 2]}', "expected a JSON object of lists"),
    ("tenon.names", '{"kind": ["cat", "cat"]}', "different texts"),
    ("tenon.columns", '{"x": ["height"]}', "has 2 columns, and metadata \"tenon.columns\" names 1"),
])  # fmt: skip
def test_names_that_are_damaged(tmp_path, key, value, words):
    score, parameters = named(tmp_path)
    tenon.onnx.save(score, parameters, tmp_path / "named.onnx")
    made = onnx.load(tmp_path / "named.onnx")
    for each in made.metadata_props:
        each.value = value if each.key == key else each.value
    with pytest.raises(tenon.error.BadDataError, match=words):
        tenon.onnx.load(made)
    del made.metadata_props[:]
    assert tenon.onnx.load(made).names() == {}
