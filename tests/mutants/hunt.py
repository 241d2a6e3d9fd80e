"""Runs the tests of each mutant until one notices it. SPDX-License-Identifier: Apache-2.0"""
import collections
import concurrent.futures
import re
import threading
import time

import build
import suite

NEAR = 7  # suite.nearness of a test that comes before those that noticed other mutants of the file
BATCH_SECONDS = 10  # usual time of the tests of one program that run in one process


def _batches(tests):
    """Divides the tests of one program into one list for each process, the fastest tests first."""
    batch, seconds = [], 0.0
    for test in sorted(tests, key=lambda each: each.seconds):
        if batch and (seconds + test.seconds > BATCH_SECONDS or not test.case or len(batch) >= 200):
            yield batch
            batch, seconds = [], 0.0
        batch.append(test)
        seconds += test.seconds
    if batch:
        yield batch


class Hunt:
    def __init__(self, tests, edits, results, most_seconds, until=None):
        """`edits` by number of the mutant; `until`, of time.monotonic(), is when no other mutant begins."""
        self._tests, self._edits, self._results = tests, edits, results
        self._most_seconds, self._until = most_seconds, until
        self._noticed_by = collections.defaultdict(collections.Counter)  # file: {program: how many it noticed}
        self._lock = threading.Lock()

    def _distance(self, mutant, program, tests):
        """The sort key of a program of tests for a mutant: the nearest first, then those that noticed other mutants of
        its file, then the fastest."""
        near = suite.nearness(mutant.file, tests[0].file)
        with self._lock:
            noticed = self._noticed_by[mutant.file][program]
        late = all(test.late for test in tests)
        return late, near < NEAR and noticed == 0, -near, -noticed, sum(test.seconds for test in tests)

    def _fails(self, batch, environment):
        """The test of the batch that notices the mutant of the environment, and how; None if none does."""
        batch = list(batch)
        environment = {**batch[0].environment, **environment}
        while batch:
            command = batch[0].command + ["-x"] * ("pytest" in batch[0].command)  # until one fails
            if batch[0].case:
                command = [batch[0].command[0], "--gtest_filter=" + ":".join(test.case for test in batch),
                           "--gtest_also_run_disabled_tests", "--gtest_fail_fast", "--gtest_brief=0"]
            limit = 20 + 8 * sum(test.seconds for test in batch)
            outcome = suite.execute(command, batch[0].folder, limit, environment)
            if outcome.passed:
                return None
            ran = re.findall(r"^\[ RUN      \] (\S+)", outcome.output, re.MULTILINE)
            failed = re.findall(r"^\[  FAILED  \] ([^\s,]+)", outcome.output, re.MULTILINE)
            case = failed[0] if failed else ran[-1] if ran else ""
            by = next((test for test in batch if test.case == case), batch[0])
            how = "hang" if outcome.hung else "crash" if outcome.code < 0 or not (failed or not by.case) else "failure"
            if how != "failure":
                return by, how
            again = suite.execute(by.command, by.folder, 20 + 8 * by.seconds, environment)
            if not again.passed:
                return by, how
            batch.remove(by)  # it failed by chance
        return None

    def _hunt(self, mutant):
        if self._until is not None and time.monotonic() > self._until:
            return {"outcome": "not run", "seconds": 0}
        if not mutant.file.endswith(".py"):
            reaching = [test for test in self._tests if mutant.id in test.reached]
            return self._noticed(mutant, reaching, {"TENON_MUTANT": str(mutant.id)})
        with build.package(self._edits[mutant.id]) as folder:
            of_package = [test for test in self._tests if "PYTHONPATH" in test.environment]
            return self._noticed(mutant, of_package, {"PYTHONPATH": str(folder)})

    def _noticed(self, mutant, tests, environment):
        """The result of the tests with that environment."""
        began = time.monotonic()
        reaching = collections.defaultdict(list)
        for test in tests:
            reaching[test.program, test.late].append(test)
        ran = left = 0
        groups = sorted(reaching.items(), key=lambda group: self._distance(mutant, group[0][0], group[1]))
        for (program, _), tests in groups:
            for batch in _batches(tests):
                if ran and time.monotonic() - began > self._most_seconds:
                    left += len(batch)
                    continue
                ran += len(batch)
                found = self._fails(batch, environment)
                if found:
                    with self._lock:
                        self._noticed_by[mutant.file][program] += 1
                    return {"outcome": "noticed", "by": found[0].name, "how": found[1],
                            "seconds": round(time.monotonic() - began, 1)}
        return {"outcome": "unnoticed" if ran else "unreached", "tests": ran, "left": left,
                "seconds": round(time.monotonic() - began, 1)}

    def run(self, mutants, state, jobs, partial=False):
        """Runs the tests of each mutant, adds its result, and returns the mutants that were not noticed or not run."""
        began, left = time.monotonic(), {"unnoticed": [], "unreached": [], "not run": []}
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            waiting = {pool.submit(self._hunt, mutant): mutant for mutant in mutants}
            for done, future in enumerate(concurrent.futures.as_completed(waiting), 1):
                mutant, result = waiting[future], future.result()
                if result["outcome"] in left:
                    left[result["outcome"]].append(mutant)
                if result["outcome"] != "not run":
                    self._results.add(mutant, state, result, partial)
                who = result.get("by", f"{result.get('tests', 0)} tests")
                print(f"[{done}/{len(mutants)} {time.monotonic() - began:.0f} s] {mutant.id} {mutant.file}: "
                      f"{result['outcome']} ({who}, {result['seconds']} s)", flush=True)
        return left
