"""The tests of the build with mutants: their list, their times, and the mutants that each reaches.
SPDX-License-Identifier: Apache-2.0"""
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import build
import catalogue
import tree

# Not run: these use a compiler, or read files and symbols; no mutant can change their results.
IDLE = re.compile(r"^(docs/(paths|snippets|examples)|sdk/(template|header|includes|exports))")
# Run last, if no other test notices a mutant: by label, and by name.
LATE_LABELS = {"slow", "long"}
LATE = re.compile(r"^docs/")
MOST_MEMORY = 12 << 30
MOST_FILE = 2 << 30


@dataclasses.dataclass
class Test:
    name: str  # of ctest
    program: str  # several tests of one program run in one process
    case: str  # the value of --gtest_filter; "" if the program is not a GoogleTest
    command: list
    folder: str
    label: str
    late: bool
    seconds: float = 0
    reached: frozenset = frozenset()


@dataclasses.dataclass
class Outcome:
    code: int  # of the process; negative: a signal
    hung: bool
    output: str
    seconds: float

    @property
    def passed(self):
        return self.code == 0 and not self.hung


def listed(pattern=None):
    """The tests of the build, or those whose names match."""
    printed = subprocess.run(["ctest", "--test-dir", str(build.BUILD), "--show-only=json-v1"], check=True,
                             capture_output=True, text=True).stdout
    tests = []
    for entry in json.loads(printed)["tests"]:
        name, command = entry["name"], entry.get("command", [])
        if IDLE.match(name) or not command or (pattern and not pattern.search(name)):
            continue
        properties = {each["name"]: each["value"] for each in entry.get("properties", [])}
        labels = properties.get("LABELS", [])
        filters = [part for part in command if part.startswith("--gtest_filter=")]
        case = filters[0].split("=", 1)[1] if filters else ""
        late = bool(LATE_LABELS.intersection(labels)) or bool(LATE.match(name))
        tests.append(Test(name, command[0] if case else name, case, command,
                          properties.get("WORKING_DIRECTORY", str(build.BUILD)), labels[0] if labels else "", late))
    return tests


def execute(command, folder, limit, environment):
    """Runs a process with a temporary folder and a process group of its own, which are removed."""
    def limits():
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_FILE, MOST_FILE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    scratch = tempfile.mkdtemp(prefix="tenon-mutants-")
    began = time.monotonic()
    hung = False
    try:
        with open(os.path.join(scratch, ".output"), "w+b") as output:
            process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=limits,
                                       env={**os.environ, "TMPDIR": scratch, **environment})
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                hung, code = True, -signal.SIGKILL
            try:  # processes that it started
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            output.seek(max(0, output.seek(0, os.SEEK_END) - 200000))
            printed = output.read().decode("utf-8", "replace")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Outcome(code, hung, printed, time.monotonic() - began)


def _reach(test):
    """Runs one test without a mutant; returns its outcome and the mutants that it reaches."""
    with tempfile.NamedTemporaryFile(prefix="tenon-mutants-reached-") as marks:
        marks.truncate(catalogue.MOST)
        outcome = execute(test.command, test.folder, 600, {"TENON_MUTANTS_REACHED": marks.name})
        marks.seek(0)
        reached = [number for number, mark in enumerate(marks.read()) if mark]
    return outcome, reached


def measure(tests, key, jobs):
    """Runs every test once, without a mutant, and sets its seconds and the mutants that it reaches. Continues an
    earlier run with the same key. Returns the tests that pass."""
    path = tree.FOLDER / "reached.jsonl"
    known = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry["key"] == key:
                known[entry["test"]] = entry
    missing = [test for test in tests if test.name not in known]
    with path.open("a", encoding="utf-8") as file, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for done, (test, (outcome, reached)) in enumerate(zip(missing, pool.map(_reach, missing)), 1):
            if not outcome.passed:  # perhaps a time limit: repeated before it is left out
                outcome, reached = _reach(test)
            entry = {"key": key, "test": test.name, "passed": outcome.passed, "seconds": round(outcome.seconds, 3),
                     "reached": reached}
            known[test.name] = entry
            file.write(json.dumps(entry) + "\n")
            file.flush()
            if not outcome.passed:
                print(f"left out, since it fails without a mutant: {test.name}\n{outcome.output[-2000:]}", flush=True)
            if done % 200 == 0:
                print(f"{done} of {len(missing)} tests measured", flush=True)
    for test in tests:
        test.seconds = known[test.name]["seconds"]
        test.reached = frozenset(known[test.name]["reached"])
    return [test for test in tests if known[test.name]["passed"]]


def stem(path):
    """The name of a file without its suffix and "_test"."""
    return re.sub(r"(_test)?\.\w+$", "", pathlib.PurePath(path).name)
