# Tests that the jobs in examples/ reach the test costs that they state. SPDX-License-Identifier: Apache-2.0
#   jobs.py <source folder> <build folder> <work folder>
import json
import pathlib
import re
import shutil
import subprocess
import sys

source, build, work = map(pathlib.Path, sys.argv[1:4])
shutil.rmtree(work, ignore_errors=True)


def train(job, set_up=()):
    folder = work / job.parent.name
    shutil.copytree(source / "examples" / job.parent, folder)
    for command in set_up:
        subprocess.run([str(part) for part in command], cwd=folder, check=True)
    text = (folder / job.name).read_text()
    bar = float(re.search(r"test cost [^.]*is at most ([0-9.]+[0-9])", text.replace("\n# ", " ")).group(1))
    done = subprocess.run([build / "bin/tenon", "train", job.name, "--log-format", "json"], cwd=folder,
                          stdout=subprocess.PIPE, text=True, check=True)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    first = next(event["cost"] for event in events if event["event"] == "end_pass")
    test = events[-1]["test"]["cost"]
    print(f"{job}: test cost {test:.4f}, bar {bar}, first pass {first:.4f}")
    if not test <= bar:
        sys.exit(f"{job}: the test cost is {test}; the job states at most {bar}")
    if not first > bar:
        sys.exit(f"{job}: the cost of the first pass, {first}, is not above the bar of {bar}")
    told = subprocess.run([build / "bin/tenon", "infer", job.name, "--set", "reader.test.first_n=2"], cwd=folder,
                          stdout=subprocess.PIPE, text=True, check=True)
    if [sorted(json.loads(line)) for line in told.stdout.splitlines()] != [["prediction", "sample"]] * 2:
        sys.exit(f"{job}: tenon infer prints {told.stdout}")


train(pathlib.Path("word2vec/ngram.toml"))
train(pathlib.Path("recommender/recommender.toml"), [[sys.executable, "-B", "generate", "data"]])
