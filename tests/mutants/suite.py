"""The tests of the build with mutants: their list, their times, and the mutants that each reaches.
SPDX-License-Identifier: Apache-2.0"""
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import build
import catalogue
import tree

# Not run: these use a compiler, or read files and symbols; no mutant can change their results.
IDLE = re.compile(r"^(docs/(paths|snippets|examples)|sdk/(header|includes|exports|abi|installed))")
# Run last, if no other test notices a mutant: by label, and by name.
LATE_LABELS = {"slow", "long", "emulated"}
LATE = re.compile(r"^docs/")
MOST_MEMORY = 12 << 30
MOST_FILE = 2 << 30


@dataclasses.dataclass
class Test:
    name: str  # of ctest
    file: str  # of its source, without folders "tests" and suffix, where it has one
    program: str  # tests of one program and environment, several of which run in one process
    case: str  # the value of --gtest_filter; "" if the program is not a GoogleTest
    command: list
    folder: str
    environment: dict
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


def environment_of(properties, outer):
    """The variables that the properties of a test set, for a process whose environment is `outer`."""
    variables = dict(entry.split("=", 1) for entry in properties.get("ENVIRONMENT", []))
    for entry in properties.get("ENVIRONMENT_MODIFICATION", []):
        name, change = entry.split("=", 1)
        what, value = change.split(":", 1)
        if what != "path_list_prepend":
            raise SystemExit(f"unknown change of an environment: {entry}")
        before = variables.get(name, outer.get(name))
        variables[name] = f"{value}:{before}" if before else value
    return variables


def listed(files=None):
    """The tests of the build, or those of some files."""
    printed = subprocess.run(["ctest", "--test-dir", str(build.BUILD), "--show-only=json-v1"], check=True,
                             capture_output=True, text=True).stdout
    programs = {"test_" + path.replace("/", "_"): path for path in build.test_files()}
    tests = []
    for entry in json.loads(printed)["tests"]:
        name, command = entry["name"], entry.get("command", [])
        if IDLE.match(name) or not command:
            continue
        file = programs.get(pathlib.PurePath(command[0]).name, name)
        if files is not None and file not in files:
            continue
        properties = {each["name"]: each["value"] for each in entry.get("properties", [])}
        labels = properties.get("LABELS", [])
        environment = environment_of(properties, os.environ)
        filters = [part for part in command if part.startswith("--gtest_filter=")]
        single = re.search(r"\.[^/]+$", name)  # else all cases of a program in one test
        case = filters[0].split("=", 1)[1] if filters and single else ""
        late = bool(LATE_LABELS.intersection(labels)) or bool(LATE.match(name))
        tests.append(Test(name, file, command[0] + str(environment) if case else name, case, command,
                          properties.get("WORKING_DIRECTORY", str(build.BUILD)), environment, late))
    return tests


def _near_words(path):
    """(folders, begins of words of the folders in a room, of the name) of a source or of a file of tests."""
    *folders, name = re.sub(r"(_test)?(\.\w+)?$", "", path.removeprefix("plugins/").replace("/test_", "/")).split("/")
    return folders, *({word.rstrip("s")[:5] for word in re.split(r"[/_]", text) if word}
                      for text in ("/".join(folders[1:]), name))


def nearness(path, file):
    """How near a file of tests is to a source: their rooms, and words that their names and folders have in common."""
    if path.startswith("bindings/") and not file.startswith("bindings/"):
        return 0
    if path.startswith("sdk/templates/"):
        return 8 * (file == "sdk/projects")
    (place, folders, name), (other_place, others, other) = _near_words(path), _near_words(file)
    rooms = 4 * (place[0] == other_place[0]) + 2 * (place == other_place)
    same = 4 * len(name & other) / max(len(name | other), 1)
    return rooms + same + 2 * len(folders & other) + len(name & others) + len(folders & others)


def nearest(path, files, most):
    return sorted(files, key=lambda file: -nearness(path, file))[:most]


def execute(command, folder, limit, environment):
    """Runs a process with a temporary folder and a process group of its own, which are removed."""
    command = ["prlimit", f"--data={MOST_MEMORY}", f"--fsize={MOST_FILE}", "--core=0", *command]
    scratch = tempfile.mkdtemp(prefix="tenon-mutants-")
    os.chmod(scratch, 0o1777)  # as /tmp, since tests become other users
    began = time.monotonic()
    hung = False
    try:
        with open(os.path.join(scratch, ".output"), "w+b") as output:
            process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True,
                                       env={**os.environ, "TMPDIR": scratch, **environment})
            try:
                code = process.wait(limit)
            except subprocess.TimeoutExpired:
                hung, code = True, -signal.SIGKILL
            with contextlib.suppress(ProcessLookupError):  # processes that it started
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            output.seek(max(0, output.seek(0, os.SEEK_END) - 200000))
            printed = output.read().decode("utf-8", "replace")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return Outcome(code, hung, printed, time.monotonic() - began)


def _reach(test):
    """Runs one test without a mutant; returns its outcome and the mutants that it reaches."""
    with tempfile.NamedTemporaryFile(prefix="reached-", dir=tree.FOLDER) as marks:  # pods have another /tmp
        marks.truncate(catalogue.MOST)
        os.chmod(marks.name, 0o666)
        outcome = execute(test.command, test.folder, 600, {**test.environment, "TENON_MUTANTS_REACHED": marks.name})
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
        for done, (test, (outcome, reached)) in enumerate(zip(missing, pool.map(_reach, missing), strict=True), 1):
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
