"""Records trainings and repeats them: reruns.py BUILD [--seed N] [--passes N] [--samples N] [RUN...]

    differences   fifty changed digits in tables that are read in order: each is located to its update
    large         one changed digit in 1 GB of data: the block that has it is named
    examples      every job of examples/: the model is the same

SPDX-License-Identifier: Apache-2.0"""
import argparse
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
LARGE = 1_000_000_000  # bytes
DIFFERENCES = 50
JOB = """passes = 2
seed = 1
save = "model.safetensors"
layer = [{{ name = "hidden", type = "fc", inputs = ["x"], size = 8, act = "tanh" }},
         {{ name = "score", type = "fc", inputs = ["hidden"], size = 1 }},
         {{ name = "cost", type = "square_error", inputs = ["score", "y"] }}]
updater = {{ type = "sgd", learning_rate = 0.1, momentum = 0.9 }}
{more}
[reader.train]
type = "csv"
files = ["table.csv"]
columns = ["x = a, b: f32", "y: f32"]
batch = {batch}
"""


class Fault(Exception):
    """A rerun that did not find what it should."""


class Reruns:
    """One method for each run; it returns what it did, in words, or raises Fault."""

    def __init__(self, build, seed, passes, samples):
        self.program, self.seed, self.passes = str(build / "bin/tenon"), seed, passes
        self.few = ["--set", f"reader.train.first_n={samples}"] if samples else []

    def tenon(self, folder, *words, codes=(0,)):
        done = subprocess.run([self.program, *words], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode not in codes:
            raise Fault(f"{' '.join(words)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def differences(self, folder):
        draw = random.Random(self.seed)
        batch, updates = 8, 300
        rows = [",".join(f"{draw.random():.6f}" for _ in "aby") for _ in range(batch * updates)]
        table, job = folder / "table.csv", folder / "job.toml"
        job.write_text(JOB.format(batch=batch, more=""))
        table.write_text("\n".join(["a,b,y", *rows]) + "\n")
        self.tenon(folder, "train", "job.toml", "--run", "run", "--quiet")
        for _ in range(DIFFERENCES):
            number = draw.randrange(len(rows))
            changed = rows[number][:-6] + str((int(rows[number][-6]) + 1) % 10) + rows[number][-5:]  # a tenth of y
            table.write_text("\n".join(["a,b,y", *rows[:number], changed, *rows[number + 1:]]) + "\n")
            told = self.tenon(folder, "rerun", "run", "--go-on", codes=(1,))
            update = number // batch + 1
            if f"the parameters after update {update} (pass 1, " not in told or "is equal" in told:
                raise Fault(f"row {number}, update {update}: {told}")
        return f"{DIFFERENCES} differences, each located to its update among {2 * updates}"

    def large(self, folder):
        draw = random.Random(self.seed)
        chunk = "".join(",".join(f"{draw.random():.6f}" for _ in "aby") + "\n" for _ in range(100_000))
        with (folder / "table.csv").open("w") as table:
            table.write("a,b,y\n")
            while table.tell() < LARGE:
                table.write(chunk)
        (folder / "job.toml").write_text(JOB.format(batch=64, more="pass_batches = 50"))
        began = time.monotonic()
        self.tenon(folder, "train", "job.toml", "--quiet", "--no-save")
        plain = time.monotonic() - began
        self.tenon(folder, "train", "job.toml", "--run", "run", "--quiet", "--no-save")
        recorded = time.monotonic() - began - plain
        place = draw.randrange(LARGE // 2, LARGE)
        with (folder / "table.csv").open("r+b") as table:
            table.seek(place)
            while not (digit := table.read(1)).isdigit():
                pass
            place = table.tell() - 1
            table.seek(place)
            table.write(b"%d" % ((int(digit) + 1) % 10))
        began = time.monotonic()
        told = self.tenon(folder, "rerun", "run", codes=(1,))
        found = re.search(r"block (\d+) of (\d+): bytes (\d+) to (\d+) differ", told)
        if not found or not int(found[3]) <= place <= int(found[4]):
            raise Fault(f"byte {place}: {told}")
        seconds = time.monotonic() - began
        return (f"a changed digit at byte {place:,} found in block {found[1]} of {found[2]} in {seconds:.1f} s; "
                f"trained in {plain:.1f} s, with a record in {recorded:.1f} s")

    def examples(self, folder):
        same, faults = 0, []
        for job in sorted((ROOT / "examples").glob("*/*.toml")):
            if "\npasses" not in job.read_text() or (job.parent / "CMakeLists.txt").exists():
                continue  # a part of other jobs, or one for plugins that are built elsewhere
            copy = folder / job.parent.name
            if not copy.exists():
                shutil.copytree(job.parent, copy)
                if (copy / "generate").exists():
                    subprocess.run([sys.executable, "-B", "generate", "data"], cwd=copy, check=True, stdout=subprocess.DEVNULL)
            try:
                told = self.repeated(copy, job)
            except Fault as fault:
                faults.append(f"{job.parent.name}/{job.name}: {fault}")
                told = "\nFAULT\n"
            same += "the same model" in told
            print(f"{job.parent.name}/{job.name}: {told.splitlines()[-2]}", flush=True)
        if faults:
            raise Fault("\n".join(faults))
        return f"{same} jobs, each the same model"

    def repeated(self, folder, job):
        """What the rerun of a job in this folder prints, with one thread."""
        self.tenon(folder, "train", job.name, "--quiet", "--run", f"runs/{job.stem}", "--passes", str(self.passes), *self.few)
        return self.tenon(folder, "rerun", f"runs/{job.stem}", "--threads", "1")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--passes", type=int, default=1, help="of examples")
    parser.add_argument("--samples", type=int, help="of a pass of examples; all of them without it")
    parser.add_argument("runs", nargs="*", default=["differences", "large", "examples"])
    arguments = parser.parse_args()
    reruns = Reruns(arguments.build.resolve(), arguments.seed, arguments.passes, arguments.samples)
    for name in arguments.runs:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name}: {getattr(reruns, name)(pathlib.Path(folder))}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Fault as fault:
        sys.exit(str(fault))
