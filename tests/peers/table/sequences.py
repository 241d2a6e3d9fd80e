"""Layers of sequences. Recurrent ones are made of the cells of PyTorch, whose weights are transposed.
SPDX-License-Identifier: Apache-2.0"""
from rows import integers, real, row, sequences

WEIGHTS = "weight.t(), recurrent_weight.t(), bias, torch.zeros_like(bias)"


def recurrent(name, attributes, gates, states, cell):
    """A row with 3 inputs and a state of 2 numbers; `cell` takes a row x and the states."""
    expression = f"steps.over(s, {cell}, {states}, 2, {attributes.get('reverse', False)})"
    parameters = {"weight": real(3, 2 * gates), "recurrent_weight": real(2, 2 * gates), "bias": real(2 * gates)}
    return row(name, {"size": 2, **attributes}, {"s": sequences((3, 1, 4), 3)}, expression, parameters=parameters)


# PyTorch applies the reset gate behind the product of the state, so its cell is another function.
GRU = ("lambda x, h: (lambda u, r: [h + u * (torch.tanh(x @ weight[:, 4:] + (r * h) @ recurrent_weight[:, 4:]"
       " + bias[4:]) - h)])(*torch.sigmoid(x @ weight[:, :4] + h @ recurrent_weight[:, :4] + bias[:4]).split(2, 1))")

# The blank is the last class, so that drawn labels are never blanks. Frames are as many as labels may need.
LABELS = sequences((2, 0, 3), draw=lambda count: integers(3, count), sequence="labels")
CTC = ("torch.stack([F.ctc_loss(torch.log_softmax(x, 1)[:, None], y[None], torch.tensor([len(x)]), "
       "torch.tensor([len(y)]), blank=3, reduction='none')[0] for x, y in zip(s, l)])")
# Steps whose sums of the gates are an input: the cell of an identity, and the gates of GRU.
LSTM_STEP = ("list(torch.lstm_cell(z, (torch.zeros_like(c), c), torch.eye(8, dtype=z.dtype), "
             "torch.zeros(8, 2, dtype=z.dtype)))")
GRU_STEP = ("(lambda u, r: h + u * (torch.tanh(z[:, 4:] + (r * h) @ recurrent_weight[:, 4:]) - h))"
            "(*torch.sigmoid(z[:, :4] + h @ recurrent_weight[:, :4]).split(2, 1))")

ROWS = [
    row("ctc", {"blank": 3}, {"s": sequences((4, 2, 7), 4), "l": LABELS}, CTC),
    row("sequence_slice", {"count": 2, "from_end": True}, {"s": sequences((3, 1, 4), 2)},
        "torch.cat([x[-2:] for x in s])"),
    recurrent("rnn", {}, 1, 1, f"lambda x, h: [torch.rnn_tanh_cell(x, h, {WEIGHTS})]"),
    recurrent("rnn", {"activation": "relu", "reverse": True}, 1, 1,
              f"lambda x, h: [torch.rnn_relu_cell(x, h, {WEIGHTS})]"),
    recurrent("lstm", {}, 4, 2, f"lambda x, h, c: torch.lstm_cell(x, (h, c), {WEIGHTS})"),
    recurrent("lstm", {"reverse": True}, 4, 2, f"lambda x, h, c: torch.lstm_cell(x, (h, c), {WEIGHTS})"),
    recurrent("gru", {}, 3, 1, GRU),
    row("lstm_step", {}, {"z": real(3, 8), "c": real(3, 2)}, LSTM_STEP),
    row("rnn_step", {}, {"z": real(3, 2), "h": real(3, 2)}, "torch.tanh(z + h @ recurrent_weight)",
        parameters={"recurrent_weight": real(2, 2)}),
    row("gru_step", {}, {"z": real(3, 6), "h": real(3, 2)}, GRU_STEP,
        parameters={"recurrent_weight": real(2, 6)}),
]
