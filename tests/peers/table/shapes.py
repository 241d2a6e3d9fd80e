"""Layers that move and choose elements. SPDX-License-Identifier: Apache-2.0"""
from rows import integers, real, row, sequences

X = {"x": real(5, 3, 4)}

ROWS = [
    row("reshape", {"shape": [2, 6]}, X, "x.reshape(5, 2, 6)"),
    row("transpose", {"axes": [0, 2, 1]}, X, "x.transpose(1, 2)"),
    row("concat", {}, {"x": real(5, 3), "y": real(5, 2)}, "torch.cat([x, y], 1)"),
    row("slice", {"axis": 2, "start": 1, "length": 2}, X, "x[:, :, 1:3]"),
    row("split", {"parts": 2}, X, "list(x.split(2, 2))"),
    row("squeeze", {}, {"x": real(5, 1, 4, 1)}, "x.reshape(5, 4)"),
    row("unsqueeze", {"axis": 2}, X, "x.unsqueeze(2)"),
    row("stack", {}, {"x": real(5, 3), "y": real(5, 3)}, "torch.stack([x, y], 1)"),
    row("unstack", {}, X, "list(x.unbind(1))"),
    row("flip", {"axes": [2]}, X, "x.flip(2)"),
    row("roll", {"shift": 1}, X, "x.roll(1, 2)"),
    row("tile", {"copies": [2, 3]}, X, "x.tile(1, 2, 3)"),
    row("repeat", {"times": 2}, X, "x.repeat_interleave(2, 2)"),
    row("pad", {"axes": [2], "before": [1], "after": [2], "value": 0.5}, X, "F.pad(x, (1, 2), value=0.5)"),
    row("sort", {}, X, "list(torch.sort(x, 2))"),
    row("argsort", {"axis": 1, "descending": True}, X, "torch.argsort(x, 1, descending=True)", training=False),
    row("top_k", {"k": 2}, X, "list(torch.topk(x, 2, 2))"),
    row("argmax", {"axis": 1}, X, "torch.argmax(x, 1)", training=False),
    row("argmin", {}, X, "torch.argmin(x, 2)", training=False),
    row("cumsum", {"axis": 1}, X, "torch.cumsum(x, 1)"),
    row("gather", {}, {"x": real(5, 3), "i": integers(3, 5, 7)}, "torch.gather(x, 1, i)"),
    row("index_select", {"indices": [2, 0, 2]}, X, "torch.index_select(x, 2, torch.tensor([2, 0, 2]))"),
    row("multiplex", {}, {"i": integers(2, 5), "x": real(5, 3), "y": real(5, 3)},
        "torch.where(i[:, None] == 0, x, y)"),
    row("one_hot", {"classes": 4}, {"i": integers(4, 5, 3)}, "F.one_hot(i, 4)"),
    row("sequence_softmax", {}, {"x": sequences((3, 1, 4), 2)}, "torch.cat([torch.softmax(s, 0) for s in x])"),
    row("sequence_pool", {"kind": "mean"}, {"x": sequences((3, 1, 4), 2)}, "torch.stack([s.mean(0) for s in x])"),
    row("sequence_pool", {"kind": "last"}, {"x": sequences((3, 1, 4), 2)}, "torch.stack([s[-1] for s in x])"),
    row("sequence_reverse", {}, {"x": sequences((3, 1, 4), 2)}, "torch.cat([s.flip(0) for s in x])"),
    row("sequence_concat", {}, {"x": sequences((3, 1, 4), 2), "y": sequences((1, 2, 1), 2, sequence="t")},
        "torch.cat([part for pair in zip(x, y) for part in pair])"),
    row("row_conv", {"length": 2}, {"x": sequences((3, 1, 4), 2)},
        "torch.cat([s * weight[0] + F.pad(s[1:], (0, 0, 0, 1)) * weight[1] for s in x])",
        parameters={"weight": real(2, 2)}),
    row("sequence_pad", {"length": 4}, {"x": sequences((3, 1, 4), 2)},
        "[torch.nn.utils.rnn.pad_sequence(x, batch_first=True), "
        "torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]]).double()]"),
]
