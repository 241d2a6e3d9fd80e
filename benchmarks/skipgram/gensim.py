"""Row 7 in gensim, which draws its own negatives and updates after every pair. So its text is words as the row draws
them, a pair learns at the rate of a step over the step's pairs, and the loss that is compared is that of the row's 16th
batch with the vectors that as many pairs as are in 15 have made. SPDX-License-Identifier: Apache-2.0
"""
import numpy as np
from gensim.models import Word2Vec

from support import peer

words, size, batch, batches, targets, window, rate = 70_000, 100, 1024, 16, 6, 5, 3
centres = peer.read("centres", (batches, batch), np.int64)
others = peer.read("targets", (batches, batch, targets), np.int64)
counts = np.rint(1e9 * np.diff(np.log(np.arange(1, words + 2)))).astype(int)
model = Word2Vec(vector_size=size, sg=1, negative=targets - 1, ns_exponent=1, sample=0, window=window,
                 shrink_windows=False, min_count=1, sorted_vocab=0, workers=peer.THREADS)
model.build_vocab_from_freq(dict(enumerate(counts.tolist())))
model.wv.vectors[:] = peer.read("centres.weight", (words, size))
model.syn1neg[:] = peer.read("targets.weight", (words, size))


def pairs_of(sentence):
    return 2 * window * len(sentence) - window * (window + 1)


def train(sentences):
    model.train(sentences, total_examples=len(sentences), epochs=1, start_alpha=rate / batch, end_alpha=rate / batch)


def loss_of(at):
    score = np.einsum("bd,btd->bt", model.wv.vectors[centres[at]], model.syn1neg[others[at]])
    return (np.logaddexp(0, -score[:, 0]) + np.logaddexp(0, score[:, 1:]).sum(1)).mean()


text = others.ravel().tolist()
train([text[:1539]])  # 15 * 1024 pairs
loss = loss_of(15)
sentences = [text[at:at + 1000] for at in range(0, 98_000, 1000)]
seconds = peer.mean_seconds(1, lambda: train(sentences))
peer.report(seconds=seconds * batch / sum(map(pairs_of, sentences)), loss=loss)
