# The same 100 MB of numbers read by pandas, whole, into memory. SPDX-License-Identifier: Apache-2.0
#   peer.py THREADS FOLDER [MODE]
import json
import sys
import time

import numpy
import pandas

began = time.perf_counter()
types = {f"x{i}": numpy.float32 for i in range(13)} | {"label": numpy.int32}
frame = pandas.read_csv(f"{sys.argv[2]}/data.csv", dtype=types, engine="c")
seconds = time.perf_counter() - began
print(json.dumps({"unit": "ms", "value": 1e3 * seconds, "samples": len(frame)}))
