"""Row 12, csv, in pandas: whole, into memory. SPDX-License-Identifier: Apache-2.0"""
import time

from support import peer

import numpy as np
import pandas

types = {f"x{i}": np.float32 for i in range(13)} | {"label": np.int32}
began = time.perf_counter()
frame = pandas.read_csv(f"{peer.FOLDER}/data.csv", dtype=types, engine="c")
seconds = time.perf_counter() - began
peer.report(seconds=seconds, loss=frame["x0"].astype(np.float64).sum())
