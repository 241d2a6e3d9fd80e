"""A simple network in a loop of one's own: gradient machine, updater, reader and metric.

The texts are bags of words, and their label says whether a review is good. Prints the accuracy of each pass.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import tenon

VOCABULARY = 500
random = np.random.default_rng(0)
mood = random.normal(size=VOCABULARY)  # of each word


def product_reviews() -> Iterator[dict[str, object]]:
    for _ in range(2000):
        words = random.choice(VOCABULARY, size=12, replace=False)
        yield {"words": words.tolist(), "label": int(mood[words].sum() > 0)}


words = tenon.layer.data("words", tenon.data_type.sparse_binary_vector(VOCABULARY))
model = tenon.layer.fc(words, size=2, act="softmax")

gm = tenon.gradient_machine.new(model)  # gm uses its default cost function, cross-entropy to "label".
ud = tenon.updater.new_simple(learning_rate=0.5)
rd = tenon.batch(tenon.reader.typed(product_reviews, gm.types), 50)
mt = tenon.metric.new_acc()

accuracies = []
for mb, pass_end in rd.read(passes=6):
    gm.feed(mb)
    ud.update(gm)
    mt.append(gm, mb)  # compute and record the accuracy of this minibatch.
    if pass_end:
        accuracies.append(mt.flash())  # output aggregated accuracy records of this pass and reset mt.
        print(f"pass {len(accuracies)}: accuracy {accuracies[-1]:.3f}")
