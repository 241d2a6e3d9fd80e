# Tests that the jobs in examples/ reach the test costs or metrics that they state. SPDX-License-Identifier: Apache-2.0
#   jobs.py <source folder> <build folder> <work folder> [long]
# With "long" it runs what takes longer than a minute in full, else that in part.
import json
import pathlib
import re
import shutil
import subprocess
import sys

import scratch

source, build, work = map(pathlib.Path, sys.argv[1:4])
GENERATE = [[sys.executable, "-B", "generate", "data"]]  # makes the data of an example
long = sys.argv[4:] == ["long"]
scratch.emptied(work)


def events_of(folder, job, sets=()):
    command = [build / "bin/tenon", "train", job, "--log-format", "json"]
    for value in sets:
        command += ["--set", value]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


# The cost or metric `name` of an event.
def measured(event, name):
    return event["cost"] if name == "cost" else event["metrics"][name]


# A folder with the example of a job, in which the commands of set_up have run.
def prepared(job, set_up=()):
    folder = work / job.parent.name
    shutil.copytree(source / "examples" / job.parent, folder, dirs_exist_ok=True)
    for command in set_up:
        subprocess.run([str(part) for part in command], cwd=folder, check=True)
    return folder


# worse: jobs that must miss the bar, each as replacements in the text of the job. passes, least: of a part of the
# training, and the test accuracy after it.
def train(job, set_up=(), worse=(), passes=None, least=None):
    folder = prepared(job, set_up)
    text = (folder / job.name).read_text()
    stated = re.search(r"test (\w+)[^.]*is at (most|least) ([0-9.]+[0-9])", text.replace("\n# ", " "))
    name, side, bar = stated.groups()
    sign, bar = 1 if side == "most" else -1, float(bar)
    if passes:
        bar = least
    events = events_of(folder, job.name, [f"passes={passes}"] if passes else [])
    first = measured(next(event for event in events if event["event"] == "end_pass"), name)
    test = measured(events[-1]["test"], name)
    print(f"{job}: test {name} {test:.4f}, bar {bar}, first pass {first:.4f}")
    if not sign * test <= sign * bar:
        sys.exit(f"{job}: the test {name} is {test}; the job states at {side} {bar}")
    if not sign * first > sign * bar:
        sys.exit(f"{job}: the {name} of the first pass, {first}, reaches the bar of {bar}")
    for changes in worse:
        other = text
        for old, new in changes:
            if old not in other:
                sys.exit(f"{job}: has no {old!r}")
            other = other.replace(old, new)
        (folder / "worse.toml").write_text(other)
        without = measured(events_of(folder, "worse.toml", ['save="worse.safetensors"'])[-1]["test"], name)
        print(f"{job}: test {name} {without:.4f} with {changes[-1]}")
        if not sign * without > sign * bar:
            sys.exit(f"{job}: the test {name} with {changes} is {without}, which reaches the bar of {bar}")
    told = subprocess.run([build / "bin/tenon", "infer", job.name, "--set", "reader.test.first_n=2"], cwd=folder,
                          stdout=subprocess.PIPE, text=True, check=True)
    answers = [json.loads(line) for line in told.stdout.splitlines()]
    if [sorted(answer.keys() - {"name"}) for answer in answers] != [["prediction", "sample"]] * 2:
        sys.exit(f"{job}: tenon infer prints {told.stdout}")


# A model must fail whose data asks for more than it sees: its test accuracy is at most `most`.
def fails(job, most, set_up=(), sets=()):
    folder = prepared(job, set_up)
    end = events_of(folder, job.name, sets)[-1]
    accuracy = end["test"]["metrics"]["accuracy"]
    print(f"{job}: test accuracy {accuracy:.4f} of {end['samples']} samples, most {most}")
    if accuracy > most or end["samples"] < 500:
        sys.exit(f"{job}: accuracy {accuracy} of {end['samples']} samples")
    return folder


def shows_images(folder, job):
    subprocess.run([build / "bin/tenon", "data", "show", job, "-o", "sheet.png"], cwd=folder, check=True)
    if (folder / "sheet.png").stat().st_size < 10_000:
        sys.exit(f"images/{job}: the sheet is too small a file for 64 images")


# The cost of a job falls in passes over its first samples.
def falls(job, samples):
    folder = prepared(job)
    events = events_of(folder, job.name, ["passes=2", f"reader.train.first_n={samples}", "reader.test.first_n=1000"])
    costs = [event["cost"] for event in events if event["event"] == "end_pass"]
    print(f"{job}: costs {costs}")
    if not costs[1] < costs[0] < 2.6:
        sys.exit(f"{job}: the costs of two passes are {costs}")


# A language model reaches the cost that its job states and continues a text.
# on_test: the bar is one of the test cost.
def generates(job, prompt, passes=None, most=None, on_test=True):
    folder = prepared(job)
    text = (folder / job.name).read_text()
    bar = most or float(re.search(r"is at most ([0-9.]+[0-9])", text).group(1))
    events = events_of(folder, job.name, [f"passes={passes}"] if passes else [])
    ends = [event for event in events if event["event"] == "end_pass"]
    cost = events[-1]["test"]["cost"] if on_test else ends[-1]["cost"]
    told = subprocess.run([build / "bin/tenon", "generate", job.name, "--prompt", prompt], cwd=folder,
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    print(f"{job}: cost {cost:.4f}, bar {bar}; {told!r}")
    if not cost <= bar or not told.startswith(prompt) or len(told) < len(prompt) + 5:
        sys.exit(f"{job}: the cost is {cost}, bar {bar}, and the text {told!r}")


# A translator writes as many of the test sentences without any error as its job states.
def translates(job, set_up):
    folder = prepared(job, set_up)
    text = (folder / job.name).read_text().replace("\n# ", " ")
    bar = float(re.search(r"translates at least ([0-9.]+[0-9])", text).group(1))
    accuracy = events_of(folder, job.name)[-1]["test"]["metrics"]["accuracy"]
    told = subprocess.run([build / "bin/tenon", "generate", job.name, "--format", "json"], cwd=folder,
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    written = [json.loads(line)["results"][0]["text"] for line in told.splitlines()]
    right = (folder / "data/test.target").read_text().splitlines()
    exact = sum(one == other for one, other in zip(written, right, strict=True)) / len(right)
    print(f"{job}: accuracy {accuracy:.4f}, exact {exact:.4f}, bar {bar}")
    if len(written) != len(right) or not exact >= bar:
        sys.exit(f"{job}: {exact} of the sentences are right; the job states {bar}")


if long:
    generates(pathlib.Path("language/characters.toml"), "The ", on_test=False)
    generates(pathlib.Path("language/lstm.toml"), "The ")
    generates(pathlib.Path("language/transformer.toml"), "The ")
    train(pathlib.Path("fashion_mnist/lenet.toml"))
    train(pathlib.Path("images/vgg_small.toml"), GENERATE)
else:
    train(pathlib.Path("word2vec/ngram.toml"))
    train(pathlib.Path("recommender/recommender.toml"), GENERATE)
    train(pathlib.Path("tabular/fraud.toml"), GENERATE,
          [[("class_weights = [1, 35]", "")], [('fit = ["x"]', ""), ('inputs = "x"', 'inputs = "columns"')]])
    train(pathlib.Path("transformer/transformer.toml"), GENERATE,
          [[("passes = 14", "passes = 4"), ('inputs = "placed"', 'inputs = "word"')]])
    train(pathlib.Path("fashion_mnist/lenet.toml"), passes=2, least=0.84)
    falls(pathlib.Path("fashion_mnist/resnet20.toml"), 640)
    shows_images(fails(pathlib.Path("images/linear.toml"), 0.25, GENERATE, ["passes=2"]), "linear.toml")
    train(pathlib.Path("sentiment/lstm.toml"), GENERATE)
    fails(pathlib.Path("sentiment/bag.toml"), 0.6)
    train(pathlib.Path("roles/lstm.toml"), GENERATE)
    generates(pathlib.Path("language/characters.toml"), "The ", passes=6, most=2.5, on_test=False)
    generates(pathlib.Path("language/lstm.toml"), "The ", passes=1, most=2.7)
    generates(pathlib.Path("language/transformer.toml"), "The ", passes=1, most=2.8)
    if "order 6" not in subprocess.run([sys.executable, "-B", source / "examples/language/ngram"], text=True, check=True,
                                       stdout=subprocess.PIPE).stdout:
        sys.exit("examples/language/ngram prints no model of order 6")
    translates(pathlib.Path("translation/attention.toml"), GENERATE)
