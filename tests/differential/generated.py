"""Generation with a model of ids: greedy, by beams wide enough for every text, and by draws.

SPDX-License-Identifier: Apache-2.0
"""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np

import check
import draw
import tenon
from program import random_of
from reference import Run

LENGTH, RESULTS = 4, 6  # of prompt and text together; texts of a prompt that are drawn


class Texts:
    """The texts that a program generates, and their probabilities by the reference."""

    def __init__(self, checked):
        self.program, self.model = checked.program, checked.model
        self.score = self.program.outputs[0]
        self.scorer = draw.pruned(self.program.with_nodes(self.program.nodes, costs=[]))
        self.random = random_of(self.program.seed, "prompts")
        self.limit = next(node.attributes["limit"] for node in self.program.data() if node.name == "w0")
        self.end = int(self.random.integers(self.limit))
        begins = [each for each in range(self.limit) if each != self.end]
        lengths = self.random.integers(1, 3, 3)
        self.prompts = [[int(each) for each in self.random.choice(begins, length)] for length in lengths]
        parameters = checked.layers.parameters(self.model)
        scores = checked.layers.named[self.score]
        self.generator = tenon.Generator(scores, parameters, "w0", from_logits=True, compute="float64")
        self.logarithms = cache(self._logarithms)

    def _logarithms(self, ids):
        """Returns the logarithms of the probabilities of the id that follows."""
        run = Run(self.scorer, self.model, {"w0": [np.array(ids)]}, training=False)
        scores = run.values[self.score].var.value[-1]
        return scores - scores.max() - math.log(np.exp(scores - scores.max()).sum())

    def _probability(self, prompt, text):
        return sum(self.logarithms((*prompt, *text[:k]))[each] for k, each in enumerate(text))

    def generate(self, method, **options):
        given = [np.array(each) for each in self.prompts]
        return self.generator.generate(
            given, max_length=LENGTH, method=method, end_id=self.end, seed=self.program.seed, **options
        )

    def greedy(self):
        for prompt, [found] in zip(self.prompts, self.generate("greedy"), strict=True):
            text = []
            while len(prompt) + len(text) < LENGTH and self.end not in text:
                text.append(int(self.logarithms((*prompt, *text)).argmax()))
            if list(found.ids) != text:
                raise check.Difference(f"greedy text of {prompt}: {list(found.ids)}; expected {text}")
            check.close("score of a greedy text", found.score, self._probability(prompt, text), 1e-9)

    def beams(self):
        """A beam for every text has the most probable texts of all."""
        wide, penalty = self.limit**LENGTH, float(self.random.choice([0.0, 0.7]))
        results = self.generate("beam", beam_size=wide, results=3, length_penalty=penalty)
        for prompt, found in zip(self.prompts, results, strict=True):
            texts = list(self._all(LENGTH - len(prompt)))
            ranks = {text: self._probability(prompt, text) / ((5 + len(text)) / 6) ** penalty for text in texts}
            own = [tuple(int(each) for each in result.ids) for result in found]
            if len(set(own)) < len(own) or not set(own) <= set(ranks):
                raise check.Difference(f"texts of {prompt} by beams: {own}")
            scores = [each.score for each in found]
            check.close("scores of texts by beams", scores, [ranks[text] for text in own], 1e-9)
            check.close("best scores of texts", scores, sorted(ranks.values(), reverse=True)[: len(own)], 1e-9)

    def _all(self, length):
        """Yields all texts: those that end, and those that are as long as may be."""
        for size in range(1, length + 1):
            for text in itertools.product(range(self.limit), repeat=size):
                if self.end not in text[:-1] and (size == length or text[-1] == self.end):
                    yield text

    def drawn(self):
        """The texts of a prompt are drawn by numbers of their own: at each place where several go on, ids differ now and
        then. Scores are those of the ids."""
        agree, chance = True, 0.0
        for prompt, found in zip(self.prompts, self.generate("sample", results=RESULTS), strict=True):
            for text in found:
                ids = [int(each) for each in text.ids]
                check.close("score of a drawn text", text.score, self._probability(prompt, ids), 1e-9)
            for place in range(LENGTH - len(prompt)):
                here = [tuple(int(each) for each in text.ids[: place + 1]) for text in found if len(text.ids) > place]
                shares = [np.exp(self.logarithms((*prompt, *ids[:-1]))) for ids in here]
                if len(here) > 1:
                    agree = agree and len({ids[-1] for ids in here[1:]}) == 1
                    chance += math.log(max(1e-300, float(np.prod(shares[1:], axis=0).sum())))
        if agree and chance < math.log(1e-9):
            raise check.Difference("all texts of each prompt but the first draw the same ids")


def check_texts(checked):
    texts = Texts(checked)
    texts.greedy()
    texts.beams()
    texts.drawn()
