"""Row 12, csv, in Polars: whole, into memory. SPDX-License-Identifier: Apache-2.0"""
import time

from support import peer

import polars

schema = {f"x{i}": polars.Float32 for i in range(13)} | {"label": polars.Int32}
began = time.perf_counter()
frame = polars.read_csv(f"{peer.FOLDER}/data.csv", schema=schema)
seconds = time.perf_counter() - began
peer.report(seconds=seconds, loss=frame["x0"].cast(polars.Float64).sum())
