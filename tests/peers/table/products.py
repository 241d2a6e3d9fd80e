"""Products of values and trained matrices, attention. SPDX-License-Identifier: Apache-2.0"""
from rows import integers, real, row, truth

ATTENTION = {"q": real(2, 3, 4), "k": real(2, 5, 4), "v": real(2, 5, 6)}
SHARES = "torch.softmax((q @ k.transpose(1, 2)) / 2, 2)"

ROWS = [
    row("fc", {"size": 4}, {"x": real(5, 3)}, "x @ weight + bias", parameters={"weight": real(3, 4), "bias": real(4)}),
    row("fc", {"size": 2, "axis": -1, "bias": False}, {"x": real(5, 3, 4)}, "F.linear(x, weight.T)",
        parameters={"weight": real(4, 2)}),
    row("matmul", {"transpose_b": True, "scale": 0.5}, {"x": real(5, 3, 4), "y": real(5, 2, 4)},
        "0.5 * torch.bmm(x, y.transpose(1, 2))"),
    row("einsum", {"equation": "ij,jk->ik"}, {"x": real(5, 3, 4), "y": real(5, 4, 2)},
        "torch.einsum('nij,njk->nik', x, y)"),
    row("embedding", {"vocabulary": 6, "size": 3}, {"ids": integers(6, 5, 2)}, "F.embedding(ids, weight)",
        parameters={"weight": real(6, 3)}),
    row("dot", {}, {"x": real(5, 3), "y": real(5, 3)}, "(x * y).sum(1)"),
    row("cos_sim", {"scale": 2.0}, {"x": real(5, 3), "y": real(5, 3)}, "2 * F.cosine_similarity(x, y)"),
    row("attention", {}, ATTENTION, f"[{SHARES} @ v, {SHARES}.unsqueeze(1)]"),
    row("attention_sum", {"causal": True}, ATTENTION, "torch.softmax(((q @ k.transpose(1, 2)) / 2).masked_fill("
        "torch.ones(3, 5).triu(3) > 0, -1e300), 2) @ v"),
    row("attention_weights", {"scale": 0.5}, {"q": real(2, 3, 4), "k": real(2, 5, 4)}, f"{SHARES}.unsqueeze(1)"),
    row("attention", {"heads": 2}, {"q": real(2, 3, 4), "k": real(2, 5, 4), "v": real(2, 5, 6), "m": truth(2, 5)},
        "[(lambda w: [(w @ v.reshape(2, 5, 2, 3).transpose(1, 2)).transpose(1, 2).reshape(2, 3, 6), w])("
        "torch.nan_to_num(torch.softmax(((q.reshape(2, 3, 2, 2).transpose(1, 2) @ k.reshape(2, 5, 2, 2).permute(0, 2, "
        "3, 1)) / math.sqrt(2)).masked_fill((m == 0)[:, None, None], -1e300), 3)))][0]"),
    row("position_embedding", {}, {"x": real(5, 3, 4)}, "x + weight", parameters={"weight": real(3, 4)}),
    row("scale_shift", {"scale": 2.0, "shift": 0.5}, {"x": real(5, 3)}, "2 * x + 0.5"),
    row("cdist", {}, {"x": real(5, 3, 4), "y": real(5, 2, 4)}, "torch.cdist(x, y)"),
    row("cdist", {"order": 1}, {"x": real(5, 3, 4), "y": real(5, 2, 4)}, "torch.cdist(x, y, p=1)"),
    row("conv_shift", {}, {"x": real(5, 4), "y": real(5, 3)}, "sum(x.roll(1 - j, 1) * y[:, j:j + 1] for j in range(3))"),
    row("bilinear", {"size": 2}, {"x": real(5, 3), "y": real(5, 4)}, "F.bilinear(x, y, weight, bias)",
        parameters={"weight": real(2, 3, 4), "bias": real(2)}),
]
