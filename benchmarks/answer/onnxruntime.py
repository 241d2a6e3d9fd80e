"""Row 13 in ONNX Runtime. SPDX-License-Identifier: Apache-2.0"""
from support import onnx_peer, peer

run, y = onnx_peer.bound_run(peer.read("x", (1, 784)), ("hidden", 784, 128), ("logits", 128, 10))
peer.mean_seconds(1000, run)
peer.report(**peer.single_calls(20000, run), loss=float(y[0, 0]) - float(y[0, 1]))
