"""Row 3's answer in ONNX Runtime. SPDX-License-Identifier: Apache-2.0"""
from support import onnx_peer, peer

run, y = onnx_peer.bound_run(peer.read("x", (1, 16)), ("first", 16, 32), ("second", 32, 32), ("logits", 32, 2))
peer.mean_seconds(1000, run)
calls = peer.single_calls(20000, run)
peer.report(seconds=peer.mean_seconds(20000, run), p99=calls["p99"], loss=float(y[0, 0]) - float(y[0, 1]))
