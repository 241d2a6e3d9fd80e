"""The results of mutants in build-mutants/results.jsonl; each run appends to it. SPDX-License-Identifier: Apache-2.0"""
import json
import threading

import tree


class Results:
    """The newest result of each mutant."""

    def __init__(self, path=None):
        self._path = path or tree.FOLDER / "results.jsonl"
        self._newest = {}
        self._lock = threading.Lock()
        if self._path.exists():
            for line in self._path.read_text(encoding="utf-8").splitlines():
                self._note(json.loads(line))

    def _note(self, entry):
        # A run with some of the tests is a result only if one notices the mutant.
        if not entry.get("partial") or entry["outcome"] == "noticed":
            self._newest[entry["digest"]] = entry

    def add(self, mutant, state, result, partial):
        entry = {"digest": mutant.digest, "id": mutant.id, "state": state, **result}
        if partial:
            entry["partial"] = True
        with self._lock:
            self._note(entry)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")

    def of(self, mutant):
        return self._newest.get(mutant.digest)
