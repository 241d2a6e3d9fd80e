"""Translation, as in the book's chapter "Machine translation": GRU layers read a sentence in both directions, a decoder
with attention writes the other language, and beam search decodes.

The two languages are invented; examples/translation/generate makes their sentences. Prints the share of test sentences
that are translated without any error, BLEU and the rate of wrong words.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import tenon

folder = tempfile.TemporaryDirectory()
generate = Path(__file__).parents[1] / "translation/generate"
subprocess.run([sys.executable, "-B", str(generate), folder.name], check=True)
SOURCE, TARGET = ((Path(folder.name) / f"{language}.txt").read_text().split() for language in ("source", "target"))


def sentences(part: str) -> tenon.reader.Reader:
    """A source, and its target behind <s>, which the decoder reads, and before </s>, which it is to write."""
    at = folder.name
    return tenon.reader.compose(
        tenon.reader.text(files=[f"{at}/{part}.source"], vocabulary=f"{at}/source.txt", unknown="").choose(
            source="words"
        ),
        tenon.reader.text(
            files=[f"{at}/{part}.target"],
            vocabulary=f"{at}/target.txt",
            unknown="",
            begin="<s>",
            end="</s>",
            names=["given", "wanted"],
        ),
    )


source = tenon.layer.data("source", tenon.data_type.integer_value_sequence(len(SOURCE)))
answer = tenon.data_type.sequence(tenon.data_type.integer_value(len(TARGET)), lengths_of="target")
given, wanted = tenon.layer.data("given", answer), tenon.layer.data("wanted", answer)

# docs: network
words = tenon.layer.embedding(source, vocabulary=len(SOURCE), size=32)
forward, backward = tenon.layer.gru(words, size=32), tenon.layer.gru(words, size=32, reverse=True)
encoded = tenon.layer.concat(forward, backward)
projected = tenon.layer.fc(encoded, size=48, bias=False)
boot = tenon.layer.fc(tenon.layer.sequence_pool(backward, kind="first"), size=64, act="tanh")


def decoder(encoded: tenon.Layer, projected: tenon.Layer, word: tenon.Layer) -> tenon.Layer:
    before = tenon.memory(name="decoder", size=64, boot_layer=boot)
    seen = tenon.layer.additive_attention(before, projected, encoded, name="attention")
    gates = tenon.layer.fc(seen, word, size=3 * 64, name="gates")
    state = tenon.layer.gru_step(gates, before, name="decoder")
    return tenon.layer.fc(state, size=len(TARGET), act="softmax", name="score")


whole = [tenon.StaticInput(encoded, is_seq=True), tenon.StaticInput(projected, is_seq=True)]
vectors = tenon.layer.embedding(given, vocabulary=len(TARGET), size=32, parameter_name="target")
cost = tenon.layer.cross_entropy(tenon.recurrent_group(decoder, [*whole, vectors]), wanted)
# docs: end
parameters = tenon.parameters.create(cost, seed=1)
tenon.train(cost, parameters, sentences("train").shuffle(), passes=8, batch_size=32,
            updater=tenon.updater.Adam(learning_rate=0.005))  # fmt: skip

# docs: generation
generated = tenon.GeneratedInput(size=len(TARGET), embedding_name="target", embedding_size=32)
beams = tenon.beam_search(decoder, [*whole, generated], bos_id=TARGET.index("<s>"), eos_id=TARGET.index("</s>"),
                          beam_size=3, max_length=40)  # fmt: skip
# docs: end
tests = list(sentences("test").samples())
found = [results[0].ids for results in tenon.infer(beams, parameters, {"source": [each["source"] for each in tests]})]

said = tenon.layer.data("said", tenon.data_type.integer_value_sequence(len(TARGET)))
metrics = [tenon.layer.bleu(said, wanted, name="bleu"), tenon.layer.edit_distance(said, wanted, name="distance")]
pairs = [{"said": ids, "wanted": each["wanted"]} for ids, each in zip(found, tests)]
measured = tenon.test(metrics, tenon.parameters.create(metrics), tenon.batch(lambda: iter(pairs), 100)).metrics
exact = 1 - measured["wrong_sequences"]
print(f"exact {exact:.4f}, BLEU {measured['bleu']:.4f}, wrong words {measured['error_rate']:.4f}")
for each, ids in list(zip(tests, found))[:3]:
    print(" ".join(SOURCE[id] for id in each["source"]), "->", " ".join(TARGET[id] for id in ids[:-1]))
