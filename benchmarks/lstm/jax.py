"""Row 9 in JAX: a compiled loop over the places of all texts. Mode "ragged": as long as the longest text, the words alone
in the product of the vocabulary, since JAX has no packed sequences. SPDX-License-Identifier: Apache-2.0"""
from support import jax_peer, peer

import jax
import jax.numpy as jnp
import numpy as np

WORDS = 10_000
SIZE = 256 if peer.MODE == "ragged" else 650

offsets = np.fromfile(f"{peer.FOLDER}/offsets", np.int64)
texts = len(offsets) - 1
lengths = np.diff(offsets)
places = np.concatenate([np.arange(n) for n in lengths]) * texts + np.repeat(np.arange(texts), lengths)
padded = np.zeros(int(lengths.max()) * texts, np.int32)
padded[places] = peer.read("word", (-1,), np.int64)
word = jnp.asarray(padded.reshape(-1, texts))  # [steps, texts]
following = jax_peer.tensor("next", (-1,), np.int64).astype(jnp.int32)
places = jnp.asarray(places)


def lstm(x, weight, recurrent, bias):
    def cell(state, gates):
        h, c = state
        i, f, g, o = jnp.split(gates + h @ recurrent, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((texts, SIZE))
    return jax.lax.scan(cell, (start, start), x @ weight + bias)[1]


def loss_of(rows, values, following):
    x = lstm(lstm(rows[0], *values[:3]), *values[3:6]).reshape(-1, SIZE)[places]
    return jax_peer.cross_entropy(x @ values[6] + values[7], following)


values = []
for name in "first", "second":
    values += [jax_peer.tensor(f"{name}.{part}", (SIZE, 4 * SIZE)) for part in ("weight", "recurrent_weight")]
    values.append(jnp.zeros(4 * SIZE))
values += [jax_peer.tensor("logits.weight", (SIZE, WORDS)), jnp.zeros(WORDS)]
table = jax_peer.tensor("table.weight", (WORDS, SIZE))
jax_peer.measure(jax_peer.rows_step_of(loss_of, 1.0), ([table], values), 3, 1, 5, [(word, following)])
