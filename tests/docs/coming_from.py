# Types and attributes that docs/coming-from.md names exist, and its schedules and initializers are accepted.
# SPDX-License-Identifier: Apache-2.0
import os
import re
import subprocess
import sys
import tempfile

SOURCE, BUILD = sys.argv[1:3]
PAGE = os.path.join(SOURCE, "docs", "coming-from.md")
TENON = os.path.join(BUILD, "bin", "tenon")


def run(*arguments):
    return subprocess.run([TENON, *arguments], capture_output=True, text=True, check=False)


def attributes(kind):
    """The attributes of a type, or None if no plugin offers it."""
    answer = run("plugins", "info", kind)
    if answer.returncode != 0:
        return None
    lines = answer.stdout.splitlines()
    heads = [i for i, line in enumerate(lines) if re.match(r"\s+attribute\s+type\s", line)]
    return {line.split()[0] for i in heads for line in lines[i + 1:] if re.match(r"  \S", line)}


JOB = """
[[layer]]
name = "score"
type = "fc"
inputs = "x"
size = 1
%s
[[layer]]
name = "cost"
type = "square_error"
inputs = ["score", "y"]
[reader.train]
type = "csv"
files = ["train.csv"]
columns = ["x: f32", "y: f32"]
batch = 1
[updater]
type = "sgd"
learning_rate = 0.1
schedule = { %s }
"""


def refusal(keys):
    """The message of `tenon plan` about a job with an initializer or a schedule, "" if the job is accepted."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "train.csv"), "w", encoding="utf-8") as file:
            file.write("x,y\n1,2\n")
        job = os.path.join(folder, "job.toml")
        with open(job, "w", encoding="utf-8") as file:
            file.write(JOB % (keys.replace(", ", "\n"), "") if keys.startswith(INITIALIZER) else JOB % ("", keys))
        answer = run("plan", job)
        return "" if answer.returncode == 0 else answer.stderr.strip() or f"status {answer.returncode}"


INITIALIZER = "param.weight.init = "


def key_faults():
    with open(PAGE, encoding="utf-8") as page:
        found = re.findall(r"^\|[^|]*\| `((?:type|param.weight.init) = [^`]*)` \|", page.read(), re.MULTILINE)
    for keys in found:
        message = refusal(keys)
        if message:
            yield f"{keys}: {message}"
    if len(found) < 24:
        yield f"only {len(found)} schedules and initializers were found"
    if "schedule.stepz" not in refusal('type = "step", stepz = 3') or "init_bound" not in refusal(
            INITIALIZER + '"orthogonal", param.weight.init_bound = 1'):
        yield "a key that does not exist was accepted"


def faults():
    known = {}
    rows = 0
    with open(PAGE, encoding="utf-8") as page:
        for number, line in enumerate(page, 1):
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) != 5 or not cells[2].startswith("`") or re.match("`[a-z._]+ = ", cells[2]):
                continue
            rows += 1
            for text in re.findall(r"`([^`]*)`", cells[2]):
                kind, *settings = text.split()
                if kind not in known:
                    known[kind] = attributes(kind)
                if known[kind] is None:
                    yield f"line {number}: no plugin offers the type {kind}"
                    continue
                for setting in settings:
                    if setting.split("=")[0] not in known[kind]:
                        yield f"line {number}: {kind} has no attribute {setting.split('=')[0]}"
    if rows < 40:
        yield f"only {rows} rows with types were found"
    if attributes("no_such_type") is not None or "no_such_attribute" in attributes("clip"):
        yield "a type or attribute that does not exist was found"


def main():
    found = [*faults(), *key_faults()]
    for fault in found:
        print(f"docs/coming-from.md: {fault}")
    return 1 if found else 0


sys.exit(main())
