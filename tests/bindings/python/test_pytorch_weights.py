"""Weights of recurrent layers and transformers of PyTorch and Hugging Face: outputs are those of torch.nn, and state dicts come
back. GPT-2 and BERT are small models with values at random, whose tensors are called and laid out as Hugging Face stores them.

SPDX-License-Identifier: Apache-2.0
"""

import numpy as np
import pytest

import tenon
from others import close

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
layer = tenon.layer
WORDS, SIZE, HEADS, LENGTH, BLOCKS = 11, 8, 2, 5, 2


@pytest.fixture(autouse=True)
def own_host():
    before = tenon.host()
    tenon.use(tenon.Host())
    torch.manual_seed(3)
    yield
    tenon.use(before)


def arrays(module):
    return {name: values.numpy() for name, values in module.state_dict().items()}


def check(output, state, feeds, wanted, form="torch", names=None, tmp_path=None):
    """Asserts that the state gives the output, and that it comes back as it was, also by a file."""
    parameters = tenon.parameters.create(output)
    tenon.weights.load_pytorch(parameters, state, names)
    got = tenon.infer(output, parameters, feeds)
    close(np.array(list(got)), wanted.detach().numpy(), 1e-5)
    back = tenon.weights.save_pytorch(parameters, names=names, form=form)
    again = tenon.parameters.create(output, seed=1)
    tenon.weights.load_pytorch(again, back, names)
    assert all((again[each] == parameters[each]).all() for each in parameters)
    if tmp_path is not None:
        tenon.weights.save_pytorch(parameters, tmp_path / "model.safetensors", names, form)
        fresh = tenon.parameters.create(output, seed=2)
        tenon.weights.load_pytorch(fresh, tmp_path / "model.safetensors", names)
        assert all((fresh[each] == parameters[each]).all() for each in parameters)
    return back


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("type", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers(type, bias, tmp_path):
    module = getattr(nn, type)(6, SIZE, batch_first=True, bias=bias)
    own = {"reset_after": True} if type == "GRU" else {}
    rows = layer.data("rows", tenon.data_type.dense_vector_sequence(6))
    output = getattr(layer, type.lower())(rows, size=SIZE, bias=bias, name="rnn", **own)
    x = torch.randn(3, LENGTH, 6)
    state = {f"rnn.{name}": values for name, values in arrays(module).items()}
    back = check(output, state, {"rows": list(x.numpy())}, module(x)[0], tmp_path=tmp_path)
    other = getattr(nn, type)(6, SIZE, batch_first=True, bias=bias)
    other.load_state_dict({name[4:]: torch.from_numpy(values) for name, values in back.items()})
    assert torch.allclose(other(x)[0], module(x)[0], atol=1e-6)


def test_two_layers_in_both_directions():
    module = nn.LSTM(6, SIZE, 2, batch_first=True, bidirectional=True)
    value = layer.data("rows", tenon.data_type.dense_vector_sequence(6))
    for number in range(2):
        value = layer.concat(
            *(layer.lstm(value, size=SIZE, reverse=bool(back), name=f"l{number}{back}") for back in ("", "_reverse"))
        )
    x = torch.randn(3, LENGTH, 6)
    check(value, arrays(module), {"rows": list(x.numpy())}, module(x)[0])


def test_a_gru_that_resets_before_the_product_has_no_place():
    rows = layer.data("rows", tenon.data_type.dense_vector_sequence(6))
    parameters = tenon.parameters.create(layer.gru(rows, size=SIZE, name="rnn"))
    state = {f"rnn.{name}": values for name, values in arrays(nn.GRU(6, SIZE)).items()}
    with pytest.raises(tenon.error.InvalidError, match=r"unused tensor rnn.candidate_bias \[8\]"):
        tenon.weights.load_pytorch(parameters, state)
    with pytest.raises(tenon.error.UnsupportedError, match="PyTorch has reset_after=True alone"):
        tenon.weights.save_pytorch(parameters)


@pytest.mark.parametrize("kdim", [None, 6])
def test_multi_head_attention(kdim, tmp_path):
    module = nn.MultiheadAttention(SIZE, HEADS, batch_first=True, kdim=kdim, vdim=kdim)
    for each in (module.in_proj_bias, module.out_proj.bias):
        nn.init.normal_(each)
    query = layer.data("query", tenon.data_type.dense_array([LENGTH, SIZE]))
    key = layer.data("key", tenon.data_type.dense_array([4, kdim or SIZE]))
    output = layer.multi_head_attention(query, key, key, heads=HEADS, size=SIZE, name="heads")
    q, k = torch.randn(3, LENGTH, SIZE), torch.randn(3, 4, kdim or SIZE)
    state = {f"heads.{name}": values for name, values in arrays(module).items()}
    back = check(output, state, {"query": q.numpy(), "key": k.numpy()}, module(q, k, k)[0], tmp_path=tmp_path)
    assert set(back) == set(state) and all((back[name] == state[name]).all() for name in state)


def test_transformer_encoder_layer():
    module = nn.TransformerEncoderLayer(SIZE, HEADS, 16, dropout=0.0, batch_first=True)
    x = layer.data("x", tenon.data_type.dense_array([LENGTH, SIZE]))
    x = layer.layer_norm(x + layer.multi_head_attention(x, heads=HEADS, name="self_attn"), name="norm1")
    inner = layer.fc(layer.fc(x, size=16, axis=-1, act="relu", name="linear1"), size=SIZE, axis=-1, name="linear2")
    values = torch.randn(3, LENGTH, SIZE)
    back = check(layer.layer_norm(x + inner, name="norm2"), arrays(module), {"x": values.numpy()}, module.train()(values))
    assert set(back) == set(arrays(module))


def gpt2_state(head=False):
    """The tensors of GPT2LMHeadModel: matrices of Conv1D are [in, out]."""

    def drawn(*shape):
        return torch.randn(*shape) * 0.2

    state = {"wte.weight": drawn(WORDS, SIZE), "wpe.weight": drawn(LENGTH, SIZE)}
    for number in range(BLOCKS):
        for name, shape in (("ln_1.weight", [SIZE]), ("ln_1.bias", [SIZE]), ("attn.c_attn.weight", [SIZE, 3 * SIZE]),
                            ("attn.c_attn.bias", [3 * SIZE]), ("attn.c_proj.weight", [SIZE, SIZE]),
                            ("attn.c_proj.bias", [SIZE]),
                            ("ln_2.weight", [SIZE]), ("ln_2.bias", [SIZE]), ("mlp.c_fc.weight", [SIZE, 4 * SIZE]),
                            ("mlp.c_fc.bias", [4 * SIZE]), ("mlp.c_proj.weight", [4 * SIZE, SIZE]),
                            ("mlp.c_proj.bias", [SIZE])):  # fmt: skip
            state[f"h.{number}.{name}"] = drawn(*shape)
        state[f"h.{number}.attn.bias"] = torch.tril(torch.ones(1, 1, LENGTH, LENGTH))
        state[f"h.{number}.attn.masked_bias"] = torch.tensor(-1e4)
    state.update({"ln_f.weight": drawn(SIZE), "ln_f.bias": drawn(SIZE)})
    state = {f"transformer.{name}": values for name, values in state.items()}
    return {**state, "lm_head.weight": state["transformer.wte.weight"]} if head else state


def gpt2_of_torch(state, ids, head):
    """Radford et al., "Language models are unsupervised multitask learners", 2019: norms before, GELU by tanh."""
    s = {name.removeprefix("transformer."): values for name, values in state.items()}

    def norm(x, name):
        return F.layer_norm(x, (SIZE,), s[f"{name}.weight"], s[f"{name}.bias"], 1e-5)

    x = s["wte.weight"][ids] + s["wpe.weight"][: ids.shape[1]]
    for number in range(BLOCKS):
        h = f"h.{number}."
        qkv = norm(x, f"{h}ln_1") @ s[f"{h}attn.c_attn.weight"] + s[f"{h}attn.c_attn.bias"]
        q, k, v = (part.reshape(*part.shape[:2], HEADS, -1).transpose(1, 2) for part in qkv.split(SIZE, -1))
        scores = (q @ k.transpose(-1, -2)) / (SIZE / HEADS) ** 0.5
        hidden = scores.masked_fill(~torch.tril(torch.ones(LENGTH, LENGTH)).bool(), -torch.inf)
        seen = (hidden.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
        x = x + seen @ s[f"{h}attn.c_proj.weight"] + s[f"{h}attn.c_proj.bias"]
        inner = norm(x, f"{h}ln_2") @ s[f"{h}mlp.c_fc.weight"] + s[f"{h}mlp.c_fc.bias"]
        inner = 0.5 * inner * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (inner + 0.044715 * inner**3)))
        x = x + inner @ s[f"{h}mlp.c_proj.weight"] + s[f"{h}mlp.c_proj.bias"]
    x = norm(x, "ln_f")
    return x @ s["wte.weight"].T if head else x


def gpt2(head):
    x = layer.embedding(
        layer.data("ids", tenon.data_type.DataType("int64", (LENGTH,), WORDS)), vocabulary=WORDS, size=SIZE, name="wte"
    )
    x = layer.position_embedding(x, name="wpe")
    for number in range(BLOCKS):
        h = f"h.{number}."
        x = x + layer.multi_head_attention(layer.layer_norm(x, name=f"{h}ln_1"), heads=HEADS, causal=True, name=f"{h}attn")
        inner = layer.fc(layer.layer_norm(x, name=f"{h}ln_2"), size=4 * SIZE, axis=-1, name=f"{h}mlp.c_fc")
        x = x + layer.fc(layer.gelu(inner, approximation="tanh"), size=SIZE, axis=-1, name=f"{h}mlp.c_proj")
    x = layer.layer_norm(x, name="ln_f")
    return layer.fc(x, size=WORDS, axis=-1, bias=False, name="lm_head") if head else x


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("head", [False, True])
def test_gpt2(head, stored, tmp_path):
    state, ids = gpt2_state(stored), torch.randint(0, WORDS, (3, LENGTH))
    wanted = gpt2_of_torch(state, ids, head)
    back = check(gpt2(head), state, {"ids": ids.numpy()}, wanted, "gpt2", tmp_path=tmp_path)
    for name, values in back.items():
        full = name if name == "lm_head.weight" else f"transformer.{name}"
        assert (values == state.get(full, state["transformer.wte.weight"]).numpy()).all(), name


def bert_state():
    """The tensors of BertModel."""

    def drawn(*shape):
        return torch.randn(*shape) * 0.2

    state = {"embeddings.position_ids": torch.arange(LENGTH)[None], "embeddings.word_embeddings.weight": drawn(WORDS, SIZE),
             "embeddings.position_embeddings.weight": drawn(LENGTH, SIZE),
             "embeddings.token_type_embeddings.weight": drawn(2, SIZE), "embeddings.LayerNorm.weight": drawn(SIZE),
             "embeddings.LayerNorm.bias": drawn(SIZE)}  # fmt: skip
    for number in range(BLOCKS):
        below = f"encoder.layer.{number}."
        for name, outputs, inputs in (("attention.self.query", SIZE, SIZE), ("attention.self.key", SIZE, SIZE),
                                      ("attention.self.value", SIZE, SIZE), ("attention.output.dense", SIZE, SIZE),
                                      ("intermediate.dense", 16, SIZE), ("output.dense", SIZE, 16)):  # fmt: skip
            state.update({f"{below}{name}.weight": drawn(outputs, inputs), f"{below}{name}.bias": drawn(outputs)})
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            state.update({f"{below}{name}.weight": drawn(SIZE), f"{below}{name}.bias": drawn(SIZE)})
    state.update({"pooler.dense.weight": drawn(SIZE, SIZE), "pooler.dense.bias": drawn(SIZE)})
    return {f"bert.{name}": values for name, values in state.items()}


def bert_of_torch(state, ids, types):
    """Devlin et al., "BERT", 2019: norms behind, GELU."""
    s = {name.removeprefix("bert."): values for name, values in state.items()}

    def linear(x, name):
        return F.linear(x, s[f"{name}.weight"], s[f"{name}.bias"])

    def norm(x, name):
        return F.layer_norm(x, (SIZE,), s[f"{name}.weight"], s[f"{name}.bias"], 1e-12)

    e = "embeddings."
    x = (
        s[f"{e}word_embeddings.weight"][ids]
        + s[f"{e}position_embeddings.weight"]
        + s[f"{e}token_type_embeddings.weight"][types]
    )
    x = norm(x, f"{e}LayerNorm")
    for number in range(BLOCKS):
        b = f"encoder.layer.{number}."
        q, k, v = (linear(x, f"{b}attention.self.{each}").reshape(*x.shape[:2], HEADS, -1).transpose(1, 2)
                   for each in ("query", "key", "value"))  # fmt: skip
        seen = (((q @ k.transpose(-1, -2)) / (SIZE / HEADS) ** 0.5).softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
        x = norm(x + linear(seen, f"{b}attention.output.dense"), f"{b}attention.output.LayerNorm")
        x = norm(x + linear(F.gelu(linear(x, f"{b}intermediate.dense")), f"{b}output.dense"), f"{b}output.LayerNorm")
    return torch.tanh(linear(x[:, 0], "pooler.dense"))


def bert():
    ids = layer.data("ids", tenon.data_type.DataType("int64", (LENGTH,), WORDS))
    types = layer.data("types", tenon.data_type.DataType("int64", (LENGTH,), 2))
    e = "embeddings."
    x = layer.position_embedding(layer.embedding(ids, vocabulary=WORDS, size=SIZE, name=f"{e}word_embeddings"),
                                 name=f"{e}position_embeddings")  # fmt: skip
    x = x + layer.embedding(types, vocabulary=2, size=SIZE, name=f"{e}token_type_embeddings")
    x = layer.layer_norm(x, epsilon=1e-12, name=f"{e}LayerNorm")
    for number in range(BLOCKS):
        b = f"encoder.layer.{number}."
        seen = layer.multi_head_attention(x, heads=HEADS, name=f"{b}attention")
        x = layer.layer_norm(x + seen, epsilon=1e-12, name=f"{b}attention.output.LayerNorm")
        inner = layer.fc(x, size=16, axis=-1, act="gelu", name=f"{b}intermediate.dense")
        x = layer.layer_norm(x + layer.fc(inner, size=SIZE, axis=-1, name=f"{b}output.dense"), epsilon=1e-12,
                             name=f"{b}output.LayerNorm")  # fmt: skip
    return layer.fc(x[:, 0], size=SIZE, act="tanh", name="pooler.dense")


def test_bert(tmp_path):
    state, ids, types = bert_state(), torch.randint(0, WORDS, (3, LENGTH)), torch.randint(0, 2, (3, LENGTH))
    feeds = {"ids": ids.numpy(), "types": types.numpy()}
    back = check(bert(), state, feeds, bert_of_torch(state, ids, types), "bert", tmp_path=tmp_path)
    assert {f"bert.{name}" for name in back} | {"bert.embeddings.position_ids"} == set(state)
    assert all((values == state[f"bert.{name}"].numpy()).all() for name, values in back.items())


def test_what_does_not_fit_is_named():
    parameters = tenon.parameters.create(gpt2(False))
    state = gpt2_state()
    state["transformer.h.0.attn.c_attn.weight"] = torch.zeros(SIZE, 3 * SIZE + 1)
    with pytest.raises(tenon.error.InvalidError, match=r"h.0.attn.c_attn.weight \[8, 25\]: dimension 1 is no multiple of 3"):
        tenon.weights.load_pytorch(parameters, state)
    del state["transformer.h.0.attn.c_attn.weight"]
    with pytest.raises(tenon.error.InvalidError, match='"h.0.attn.query" lacks h.0.attn.query.weight'):
        tenon.weights.load_pytorch(parameters, state)
    with pytest.raises(tenon.Error, match="'torch', 'gpt2', 'bert'"):
        tenon.weights.save_pytorch(parameters, form="gpt3")
