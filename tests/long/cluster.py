"""What a cluster's user does to trainings in it, for longer than a gate has time:
cluster.py BUILD [--interrupts N] [--away SECONDS] [--seed N], by the interpreter of scripts/venv cluster.

Ctrl-C at N random moments of as many trainings by two pods: each must end with code 130, and nothing be left of it in the
cluster or on this machine. Then the API server is gone for a time, with all connections: the training goes on, each line of
its log comes once, and the model has the bytes of one process.
SPDX-License-Identifier: Apache-2.0"""
import argparse
import os
import pathlib
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cluster"))
LONGEST = 4.0  # seconds from the start of a training to Ctrl-C
NOTHING = {"persistentvolumeclaims": 1}  # left: what was there before


def left_here(folder):
    """The processes of this machine that work in a folder."""
    found = []
    for place in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if pathlib.Path(os.readlink(place / "cwd")) == folder:
                found.append((place / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            pass
    return found


def interrupt(laptop, delay):
    """Returns the seconds until all had ended."""
    process = laptop.begin("--processes", "2")
    time.sleep(delay)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        pods = laptop.pods()
        process.kill()
        raise AssertionError((delay, process.communicate()[0], pods, left_here(laptop.folder))) from None
    seconds = time.monotonic() - began
    # Before the program has its handlers, the signal itself ends it.
    assert process.returncode in (130, -signal.SIGINT), (delay, process.returncode, output)
    assert laptop.left() == NOTHING, (delay, laptop.left(), output)
    end = time.monotonic() + 10  # a program that it has asked something, such as the plan of the job, may still answer
    while (left := left_here(laptop.folder)) and time.monotonic() < end:
        time.sleep(0.05)
    assert left == [], (delay, left, output)
    return seconds


def go_away(laptop, seconds):
    """Returns how many passes were told, and how often the client said that the server does not answer."""
    passes = 200 * int(seconds)
    laptop.write("job.toml", passes=passes)
    process = laptop.begin("--processes", "2")
    laptop.wait_for(process, f"pass +5/{passes}")
    laptop.cluster.control("drop", streams="log")
    laptop.cluster.control("drop", streams="exec")
    laptop.cluster.control("gone", seconds=seconds)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output[-4000:]
    told = re.findall(rf"pass +(\d+)/{passes}", output)
    assert told == [str(number) for number in range(int(told[0]), passes + 1)], "each line of the log comes once"
    assert laptop.trained() == laptop.trained_alone(passes)
    assert laptop.left() == NOTHING, laptop.left()
    return len(told), output.count("does not answer")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--interrupts", type=int, default=20)
    parser.add_argument("--away", type=float, default=30)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    os.environ["TENON_BUILD"] = str(arguments.build.resolve())
    import fake_user
    import training

    draw = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name).resolve()
        folder.chmod(0o755)  # pods run as another user
        (folder / "fake").mkdir()
        (folder / "laptop").mkdir()
        with fake_user.running(folder / "fake", "--image", f"{training.IMAGE}={training.BUILD}", "--claim", "work") as cluster:
            laptop = training.Laptop(folder / "laptop", cluster)
            laptop.write("job.toml", passes=1000000)
            times = [interrupt(laptop, draw.uniform(0, LONGEST)) for _ in range(arguments.interrupts)]
            if times:
                print(f"{len(times)} trainings ended by Ctrl-C: after {statistics.median(times):.1f} s, at most "
                      f"{max(times):.1f} s; nothing was left")
            if arguments.away > 0:
                lines, said = go_away(laptop, arguments.away)
                print(f"the API server was gone for {arguments.away:.0f} s, which was said {said} times; {lines} lines of the "
                      "log came once each, and the model has the bytes of one process")


if __name__ == "__main__":
    main()
