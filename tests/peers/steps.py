"""Runs a cell of PyTorch over sequences, for the expressions of rows. SPDX-License-Identifier: Apache-2.0"""
import torch


def over(sequences, cell, states, size, reverse=False):
    """cell(row [1, D], states [1, size]...) -> the next states. Returns the first state of every row, and each of the
    `states` states after the last row."""
    outputs, last = [], [[] for _ in range(states)]
    for sequence in sequences:
        now, made = [torch.zeros(1, size, dtype=torch.float64)] * states, []
        for row in sequence.flip(0) if reverse else sequence:
            now = cell(row[None], *now)
            made.append(now[0])
        outputs += made[::-1] if reverse else made
        for all_of, state in zip(last, now, strict=True):
            all_of.append(state)
    return [torch.cat(outputs), *(torch.cat(states_of) for states_of in last)]
