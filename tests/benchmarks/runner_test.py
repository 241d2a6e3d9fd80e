#!/usr/bin/env python3
"""Tests benchmarks/run: runner_test.py ROOT. The programs that it runs are scripts that print figures.
SPDX-License-Identifier: Apache-2.0"""
import argparse
import itertools
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock
from xml.etree import ElementTree

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
sys.path.insert(0, str(ROOT / "benchmarks"))

from support import chart, curves, rounds, sides, table  # noqa: E402

WORKLOAD = {"program": "mlp", "unit": "us", "scale": 1e6, "peers": [], "tolerance": 1e-3}


def script(folder, name, line):
    """Writes a program that prints a line and adds a line to <name>.calls at each call."""
    path = pathlib.Path(folder) / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho call >>\"$0.calls\"\necho '{line}'\n")
    path.chmod(0o755)
    return path


def side(folder, name, **result):
    return sides.Side(name, [script(folder, name, json.dumps(result))], {})


def options(**given):
    return argparse.Namespace(**({"rounds": 3, "noise": 0.05, "seconds": float("inf")} | given))


class Rounds(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name

    def probe(self):
        return side(self.folder, "probe", flops=1e9, bf16_flops=2e9, bandwidth=1e9)

    def calls(self, name):
        return (pathlib.Path(self.folder) / "bin" / f"{name}.calls").read_text().count("call")

    def measure(self, taking_part, shares=(0.0,), **given_options):
        """Measures rounds in which other processes take these shares of the machine; the last share is repeated."""
        given = list(shares)
        with mock.patch.object(rounds, "share_of_others",
                               lambda *_: given.pop(0) if len(given) > 1 else given[0]):
            return rounds.measure(taking_part, WORKLOAD, options(**given_options))

    def peer(self, name, body):
        """A peer whose program is a script of a shell."""
        path = script(self.folder, name, "{}")
        path.write_text(f"#!/bin/sh\necho call >>\"$0.calls\"\n{body}\n")
        return sides.Side(name, [path], {}, is_peer=True)

    def test_figures_ratio_and_limit(self):
        result = self.measure([side(self.folder, "tenon", seconds=2e-6, loss=1.0, flops=1000.0),
                               side(self.folder, "peer", seconds=5e-6, loss=1.0005), self.probe()], [0.0])
        self.assertEqual(result["rounds"], 3)
        self.assertAlmostEqual(result["sides"]["peer"]["ratio"], 2.5)
        self.assertAlmostEqual(result["limit"], 1e-6)
        self.assertEqual(self.calls("peer"), 3)

    def test_a_step_faster_than_the_limit_is_an_error_of_the_run(self):
        for amount, share in (({"flops": 2100.0}, 105), ({"bytes": 2200.0}, 110), ({"bf16_flops": 4120.0}, 103)):
            result = self.measure([side(self.folder, "tenon", seconds=2e-6, loss=1.0, **amount),
                                   side(self.folder, "peer", seconds=5e-6, loss=1.0), self.probe()], [0.0])
            self.assertEqual(result["sides"], {})
            self.assertEqual(result["problem"],
                             f"{share} % of the limit: the probe gave less than this machine can do")

    def test_products_of_bf16_have_a_limit_of_their_own(self):
        result = self.measure([side(self.folder, "tenon", seconds=2e-6, bf16_flops=1000.0), self.probe()], [0.0])
        self.assertAlmostEqual(result["limit"], 0.5e-6)

    def test_unequal_losses_are_not_compared(self):
        result = self.measure([side(self.folder, "tenon", seconds=1, loss=1.0),
                               side(self.folder, "peer", seconds=2, loss=1.002), self.probe()], [0.0])
        self.assertEqual(result["sides"], {})
        self.assertIn("not the same mathematics: loss 1.0 here, 1.002 with peer", result["problem"])

    def test_a_loss_that_is_missing_or_no_number_is_unequal(self):
        for loss in ({}, {"loss": float("nan")}):
            result = self.measure([side(self.folder, "tenon", seconds=1, loss=1.0),
                                   side(self.folder, "peer", seconds=2, **loss), self.probe()], [0.0])
            self.assertEqual(result["sides"], {})

    def test_disturbed_rounds_are_run_again(self):
        result = self.measure([side(self.folder, "tenon", seconds=1), self.probe()], [0.0, 0.06, 0.0])
        self.assertEqual((result["rounds"], result["left_out"]), (3, 1))
        self.assertEqual(self.calls("tenon"), 4)

    def test_a_machine_that_is_never_quiet_gives_no_figure(self):
        result = self.measure([side(self.folder, "tenon", seconds=1), self.probe()], [0.5])
        self.assertEqual(result["sides"], {})
        self.assertEqual(self.calls("tenon"), 9)
        self.assertIn("disturbed all 9 rounds", result["problem"])

    def test_a_program_that_fails_is_named(self):
        path = script(self.folder, "tenon", "{}")
        path.write_text("#!/bin/sh\necho 'no such plugin' >&2\nexit 3\n")
        result = self.measure([sides.Side("tenon", [path], {}), self.probe()], [0.0])
        self.assertEqual(result["problem"], "tenon ended with 3: no such plugin")

    def test_a_peer_that_fails_is_left_out_and_named(self):
        result = self.measure([side(self.folder, "tenon", seconds=1, loss=1.0),
                               self.peer("broken", "echo 'no compiler' >&2; exit 5"),
                               self.peer("peer", "echo '{\"seconds\": 2, \"loss\": 1}'"), self.probe()])
        self.assertEqual(list(result["sides"]), ["tenon", "peer"])
        self.assertEqual(result["failed"], {"broken": "broken ended with 5: no compiler"})
        self.assertEqual((self.calls("broken"), self.calls("peer")), (1, 3))
        self.assertIn("; NO FIGURE: broken ended with 5: no compiler (3 rounds)",
                      table.row(WORKLOAD, result | {"workload": "mlp", "device": "cpu", "threads": 1}))

    def test_a_peer_that_hangs_is_ended(self):
        began = time.monotonic()
        result = self.measure([side(self.folder, "tenon", seconds=1, loss=1.0), self.peer("peer", "exec sleep 60"),
                               self.probe()], seconds=0.5)
        self.assertLess(time.monotonic() - began, 30)
        self.assertEqual(list(result["sides"]), ["tenon"])
        self.assertEqual(result["failed"], {"peer": "peer did not end in 0.5 s"})

    def test_a_program_of_tenon_that_hangs_gives_no_figure(self):
        hanging = self.peer("tenon", "exec sleep 60")
        result = self.measure([sides.Side("tenon", hanging.command, {}), self.probe()], seconds=0.5)
        self.assertEqual((result["sides"], result["problem"]), ({}, "tenon did not end in 0.5 s"))

    def test_a_side_says_which_library_it_uses(self):
        line = '{"seconds": 2, "loss": 1, "library": "MKL 2024.2"}'
        result = self.measure([side(self.folder, "tenon", seconds=1, loss=1.0), self.peer("peer", f"echo '{line}'"),
                               self.probe()])
        self.assertEqual(result["sides"]["peer"]["library"], "MKL 2024.2")
        self.assertNotIn("library", result["sides"]["tenon"])

    def test_a_process_measured_from_outside_has_no_limit(self):
        tenon = side(self.folder, "tenon", seconds=2e-6, loss=1.0, flops=1000.0, p99=1.0)
        with mock.patch.object(rounds, "share_of_others", lambda *_: 0.0):
            result = rounds.measure([tenon, self.probe()], WORKLOAD | {"outside": "memory"}, options())
        self.assertIsNone(result["limit"])
        self.assertNotIn("p99", result["sides"]["tenon"])
        self.assertGreater(result["sides"]["tenon"]["median"], 1e5)  # bytes
        self.assertEqual(result["loss"], 1.0)

    def test_medians_not_means(self):
        kept = [{"tenon": {"seconds": s}, "peer": {"seconds": 2.0}, "probe": {"flops": 1, "bandwidth": 1}}
                for s in (1.0, 1.0, 100.0)]
        result = rounds.summary(kept, 0)
        self.assertEqual(result["sides"]["tenon"]["median"], 1.0)
        self.assertEqual(result["sides"]["peer"]["ratio"], 2.0)
        self.assertIsNone(result["limit"])


class Processors(unittest.TestCase):
    def test_a_core_is_taken_twice_when_none_is_left(self):
        with tempfile.TemporaryDirectory() as folder:
            for number, siblings in enumerate(("0-1", "0-1", "2,3", "2,3")):
                topology = pathlib.Path(folder) / f"cpu{number}/topology"
                topology.mkdir(parents=True)
                (topology / "thread_siblings_list").write_text(siblings + "\n")
            program = ("import os; from support import peer\n"
                       "os.sched_getaffinity = lambda _: {0, 1, 2, 3, 4}\n"
                       f"print([peer.processors(count, {folder!r}) for count in (1, 2, 4, 9)])")
            done = subprocess.run([sys.executable, "-B", "-c", program, "1", folder, "", "other"], capture_output=True,
                                  text=True, check=False, cwd=ROOT / "benchmarks")
        if "No module named 'numpy'" in done.stderr:
            self.skipTest("no NumPy")
        self.assertEqual(done.stdout.strip(), "[[0], [0, 2], [0, 2, 4, 1], [0, 2, 4, 1, 3]]", done.stderr)


class Noise(unittest.TestCase):
    def test_share_of_others(self):
        self.assertAlmostEqual(rounds.share_of_others(10 + 5 / rounds.TICKS, 8.0, 10.0, 2), 0.1)
        self.assertEqual(rounds.share_of_others(8.0, 8.2, 10.0, 2), 0.0)

    def test_time_that_the_host_takes_counts(self):
        with tempfile.NamedTemporaryFile("w", suffix="stat") as file:
            file.write("cpu  100 10 20 9999 999 1 2 40 7 7\n")
            file.flush()
            self.assertAlmostEqual(rounds.machine_seconds(file.name), 173 / rounds.TICKS)


RESULT = {"workload": "mlp", "device": "cpu", "threads": 1, "rounds": 3, "left_out": 1, "limit": 1e-6, "failed": {},
          "sides": {"tenon": {"median": 2e-6, "least": 1e-6, "most": 3e-6, "ratio": 1.0},
                    "peer": {"median": 5e-6, "least": 4e-6, "most": 6e-6, "ratio": 2.5}}}


class Output(unittest.TestCase):
    def test_row(self):
        self.assertEqual(table.row(WORKLOAD, RESULT),
                         "mlp, 1 thread, us: tenon 2 [1 to 3]; peer 5 = 2.50 x [4 to 6]; limit 1 (50 % reached) "
                         "(3 rounds, 1 disturbed)")

    def test_the_summary_takes_the_best_number_of_threads_of_each_side(self):
        two = json.loads(json.dumps(RESULT))
        two["threads"] = 2
        two["sides"]["tenon"]["median"], two["sides"]["peer"]["median"] = 1e-6, 8e-6
        self.assertIn("| mlp | us | 1 (2) | peer 5 | 5.00 | 100 % |",
                      table.summary({"mlp": WORKLOAD}, [RESULT, two]))

    def test_rows_say_how_far_the_cores_are(self):
        for seconds, text in (9e-8, "; cores 90 ns apart (near) ("), (4e-7, "; cores 400 ns apart (far) ("):
            self.assertIn(text, table.row(WORKLOAD, RESULT | {"probe": {"round_trip": seconds}}))
        self.assertNotIn("cores", table.row(WORKLOAD, RESULT | {"probe": {"round_trip": 0}}))  # one thread

    def test_the_summary_says_what_computes_the_products_of_a_peer(self):
        result = json.loads(json.dumps(RESULT))
        result["sides"] |= {"pytorch compile": result["sides"]["peer"] | {"library": "MKL 2024.2, oneDNN 3.13"}}
        text = table.summary({"mlp": WORKLOAD}, [result])
        self.assertTrue(text.endswith("\nProducts of pytorch: MKL 2024.2, oneDNN 3.13."), text)

    def test_rates(self):
        self.assertEqual(table.shown({"unit": "MB/s", "count": 100}, 0.5), "200")

    def test_chart(self):
        bars = ElementTree.fromstring(chart.svg({"mlp": WORKLOAD}, [RESULT])).findall("{*}rect")
        self.assertEqual(len(bars), 1)
        self.assertGreater(float(bars[0].get("width")), 0)


class Program(unittest.TestCase):
    def run_it(self, *words):
        return subprocess.run([sys.executable, "-B", ROOT / "benchmarks/run", *words], capture_output=True, text=True,
                              check=False)

    def test_two_builds_side_by_side(self):
        with tempfile.TemporaryDirectory() as new, tempfile.TemporaryDirectory() as old:
            script(new, "bench_mlp", '{"seconds": 1e-6, "loss": 2, "flops": 1000}')
            script(new, "bench_probe", '{"flops": 1e10, "bandwidth": 1e10}')
            script(old, "bench_mlp", '{"seconds": 2e-6, "loss": 2, "flops": 1000}')
            figures = pathlib.Path(new) / "figures.json"
            done = self.run_it("mlp", "--peers", "none", "--rounds", "2", "--threads", "1", "--noise", "1", "--build",
                               new, "--against", old, "--json", figures, "--chart", pathlib.Path(new) / "chart.svg")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertAlmostEqual(json.loads(figures.read_text())[0]["sides"]["old"]["ratio"], 2.0)
            self.assertIn("old 2 = 2.00 x", done.stdout)

    def test_programs_are_told_the_device(self):
        for workload, device, words, unit in (("wide_mlp_tf32", "cuda:1", "1 tf32 cuda:1", "ms"),
                                              ("mlp", "cuda", "1  cuda", "us"), ("adam", "cpu", "1 100 ", "ms")):
            with tempfile.TemporaryDirectory() as build:
                script(build, "bench_probe", '{"flops": 1e10, "bandwidth": 1e10}')
                program = script(build, f"bench_{workload.partition('_tf32')[0]}", "")
                program.write_text(f'#!/bin/sh\n[ "$1 $3 $4" = "{words}" ] && echo \'{{"seconds": 1, "flops": 1e10}}\'')
                done = self.run_it(workload, "--device", device, "--peers", "none", "--rounds", "1", "--noise", "1",
                                   "--threads", "1", "--build", build)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            place = "1 thread" if device == "cpu" else device
            self.assertTrue(done.stdout.startswith(f"{workload}, {place}, {unit}: tenon 1"), done.stdout)
            self.assertEqual("limit" in done.stdout.splitlines()[0], device == "cpu")  # of the machine, by the probe

    def test_mistakes_are_named(self):
        unknown = self.run_it("mpl")
        self.assertEqual(unknown.returncode, 64)
        self.assertIn('no workload "mpl" on cpu; there are: mlp', unknown.stderr)
        self.assertIn('no workload "csv" on cuda; there are: mlp', self.run_it("csv", "--device", "cuda").stderr)
        with tempfile.TemporaryDirectory() as empty:
            self.assertIn("benchmarks/setup builds it", self.run_it("mlp", "--build", empty).stderr)

    def test_every_workload_has_its_files(self):
        for device, least in ("cpu", 40), ("cuda", 14):
            self.assertGreaterEqual(len(self.run_it("--list", "--device", device).stdout.splitlines()), least)
        import tomllib
        for name, workload in tomllib.loads((ROOT / "benchmarks/workloads.toml").read_text()).items():
            folder = ROOT / "benchmarks" / workload.get("program", name)
            self.assertTrue((folder / "tenon.cpp").exists(), name)
            self.assertTrue(("scale" in workload) != ("count" in workload), name)
            kinds = workload.get("devices", ["cpu"])
            for peer in itertools.chain.from_iterable(workload.get(kind, workload)["peers"] for kind in kinds):
                path = folder / f"{peer.split()[0]}.py"
                if path.exists():
                    compile(path.read_text(), path, "exec")
                else:  # another mode of Tenon's program, or a program by hand
                    self.assertTrue(path.with_suffix(".cpp").exists(), f"{name}: {peer}")

    def test_pytorch_on_other_devices_uploads_its_feeds_in_each_step(self):
        program = ("import torch; torch.Tensor.pin_memory = torch.Tensor.clone\n"  # which needs a GPU
                   "from support import torch_peer\n"
                   "x, value = torch_peer.feed(torch.ones(1)), torch.ones(1, requires_grad=True)\n"
                   "step = torch_peer.training_step(lambda: (x * value).sum())\n"
                   "step(); x.zero_(); print(step().item())")
        for device, loss in ("cpu:0", "1.0"), ("cpu", "0.0"):
            done = subprocess.run([sys.executable, "-B", "-c", program, "1", "", "", device], capture_output=True,
                                  text=True, check=False, cwd=ROOT / "benchmarks")
            if "No module named 'torch'" in done.stderr:
                self.skipTest("no PyTorch")
            self.assertEqual(done.stdout.strip(), loss, done.stderr)

    def test_gpu_check_has_the_programs_of_all_workloads_on_cuda(self):
        import tomllib
        wanted = {workload.get("program", name)
                  for name, workload in tomllib.loads((ROOT / "benchmarks/workloads.toml").read_text()).items()
                  if "cuda" in workload.get("devices", [])}
        listed = re.search(r"set\(benchmarks ([^)]*)\)", (ROOT / "tests/devices/gpu_check/gpu_check.cmake").read_text())
        self.assertEqual(set(listed[1].split()), wanted)


class Curves(unittest.TestCase):
    def test_a_line_is_found_whatever_the_sizes(self):
        xs = [1, 10, 100, 10000]
        fixed, each, r2 = curves.line(xs, [2e-6 + 3e-7 * x for x in xs])
        self.assertAlmostEqual(fixed * 1e6, 2)
        self.assertAlmostEqual(each * 1e7, 3)
        self.assertAlmostEqual(r2, 1)

    def test_small_sizes_count_as_much_as_large_ones(self):
        """A large point that is 10 % off moves the cost of a small one by little."""
        fixed, _, r2 = curves.line([1, 2, 4, 1000], [11, 12, 14, 1.1 * 1010])
        self.assertAlmostEqual(fixed, 10, delta=0.3)
        self.assertLess(r2, 1)

    def test_fits_state_costs_with_units(self):
        def fitted(name, seconds_of, processors=4):
            points = curves.CURVES[name].points(processors)
            return curves.CURVES[name].fit(points, [seconds_of(point.x) for point in points])

        self.assertEqual(fitted("layers_8", lambda n: 2e-6 + 0.5e-6 * n), "2 us + 500 ns for each layer (r^2 1.0000)")
        self.assertEqual(fitted("parameters", lambda n: 28 * n / 20e9 + 1e-4),
                         "from 32 MB on 100 us + 1400 ps for each parameter, 20 GB/s (r^2 1.0000)")
        self.assertEqual(fitted("batch", lambda n: 40e-6 + 5e-6 * n),
                         "40 us + 5 us for each sample (r^2 1.0000); half the rate at 8.0 samples")
        self.assertEqual(fitted("threads", lambda n: 0.2 + 0.8 / n),
                         "2.50 times as fast on 4 threads; serial part 20 %")
        self.assertEqual(fitted("threads", lambda n: 1, processors=1), "one processor: no fit")

    def test_the_command_measures_every_point_and_shows_the_limit(self):
        with tempfile.TemporaryDirectory() as folder:
            script(folder, "bench_curve", json.dumps({"seconds": 1e-3, "flops": 1e6, "bytes": 1e6}))
            script(folder, "bench_probe", json.dumps({"flops": 1e10, "bandwidth": 1e10}))
            file = pathlib.Path(folder) / "points.json"
            done = self.curves("batch", "--rounds", "2", "--build", folder, "--json", file)
            self.assertEqual(done.returncode, 0, done.stderr)
            points = json.loads(file.read_text())["batch"]
            calls = (pathlib.Path(folder) / "bin/bench_curve.calls").read_text().count("call")
            self.assertEqual(calls, 2 * len(points))
            self.assertIn("| 128 | 1 ms | 7.81 us | 20 % |", done.stdout)

    def test_wrong_arguments_are_named(self):
        for words, text in ((["wrong"], 'no curve "wrong"; there are: layers_8'),
                            (["--rounds", "0"], "at least one round"),
                            (["batch", "--build", "/nowhere"], "/nowhere/bin/bench_curve does not exist")):
            done = self.curves(*words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)

    @staticmethod
    def curves(*words):
        return subprocess.run([sys.executable, ROOT / "benchmarks/curves", *words], check=False, capture_output=True,
                              text=True)


if __name__ == "__main__":
    unittest.main()
