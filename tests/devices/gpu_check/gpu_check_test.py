#!/usr/bin/env python3
"""Tests scripts/gpu-check with programs that stand for Tenon's: gpu_check_test.py ROOT. Its tests on the emulated GPU are
in gpu_check.cmake. SPDX-License-Identifier: Apache-2.0"""
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
FACTS = 'printf "GPU\\tGPU of a test, 1.0 GiB\\ndriver\\tCUDA 13.0\\nNVRTC\\t13.0\\n"'
PASSED = 'echo "[==========] 7 tests from 1 test suite ran."; echo "[  PASSED  ] 7 tests."'
TRAINED = ('echo "pass 1: cost 0.5 in 1 s, 1000 samples/s"; '
           'for name; do case "$name" in *.safetensors) echo m >"$name" ;; esac; done')
NO_KERNEL = '{}: layer "mixed" (attention): it has native kernels only, and none for device "cuda" and float32'
HANGS = "trap '' TERM; while :; do sleep 1; done"


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="a check "))
        self.addCleanup(shutil.rmtree, self.folder)
        self.check, self.there = self.folder / "unpacked here", self.folder / "current folder"
        self.there.mkdir()
        shutil.copytree(ROOT / "scripts/gpu_check", self.check / "gpu_check")
        shutil.copy(ROOT / "scripts/gpu-check", self.check)
        (self.check / "benchmarks").mkdir()
        shutil.copy(ROOT / "benchmarks/workloads.toml", self.check / "benchmarks")
        self.program("bin/tenon", f'[ "$1" != --version ] || {{ echo tenon 9.8.7; exit; }}; shift; {TRAINED}')
        self.program("tests/test_gpu_measure",
                     f'[ "$1" != facts ] || {{ {FACTS}; exit; }}; printf "relu\\t9 GB/s\\tok\\n"')
        for name in ("gather", "segment"):
            self.program(f"tests/test_devices_{name}_test", PASSED)
        (self.check / "tests/gpu_suite").write_text("test_devices_gather_test -\ntest_devices_segment_test -*.No\n")
        for name in ["adam", "dlrm", "gpt_block", "lenet", "lstm", "mlp", "ranking", "resnet", "tiny", "wide_mlp"]:
            self.program(f"bin/bench_{name}", """echo '{"seconds": 2e-06, "loss": 1}'""")
        self.program("path/python3", "echo 'this version is not installed' >&2; exit 127")
        for minor in range(11, 15):
            self.program(f"path/python3.{minor}", "exit 1")
        self.program("sanitizer", 'echo "========= ERROR SUMMARY: 0 errors"')
        (self.check / "devices").mkdir()
        self.environment = os.environ | {
            "PATH": f"{self.check}/path:{os.environ['PATH']}", "TENON_COMPUTE_SANITIZER": f"{self.check}/sanitizer",
            "TENON_GPU_CHECK_LOCK": f"{self.folder}/lock", "TENON_GPU_DEVICES": f"{self.check}/devices"}

    def program(self, path, text):
        file = self.check / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/bash\n{text}\n")
        file.chmod(0o755)

    def start(self, *words, there=None):
        return subprocess.Popen([self.check / "gpu-check", *words], cwd=there or self.there, env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run_it(self, *words, code=0, there=None):
        process = self.start(*words, there=there)
        out = process.communicate(timeout=120)[0]
        self.assertEqual(process.returncode, code, out)
        return out

    def rows(self):
        lines = (self.there / "gpu-check.md").read_text().splitlines()
        return {cells[1].strip(): (cells[2].strip(), cells[3].strip())
                for cells in (line.split("|") for line in lines if line.startswith("|")) if cells[1] != "---"}

    def test_the_table(self):
        out = self.run_it()
        self.assertRegex((self.there / "gpu-check.md").read_text(),
                         r"^tenon 9.8.7 on CUDA, 20\d\d-\d\d-\d\d\n\n\| what \| result \| verdict \|\n\|---\|---\|---\|\n"
                         r"\| GPU \| GPU of a test, 1.0 GiB \| - \|\n")
        rows = self.rows()
        self.assertEqual(rows["relu"], ("9 GB/s", "ok"))
        self.assertEqual(rows["primitives: gather"], ("7 tests", "ok"))
        self.assertEqual(rows["synccheck: segment"], ("no finding", "ok"))
        self.assertEqual(rows["training: two runs"][1], "ok")
        self.assertEqual(rows["benchmarks in PyTorch"], ("left out: no PyTorch is installed", "-"))
        self.assertEqual(rows["benchmark tiny"], ("us: tenon 2", "-"))
        self.assertEqual(sum(name.startswith("benchmark ") for name in rows), 14)
        self.assertIn(f"{len(rows) - 1} rows, 0 rows failed", out)
        self.assertEqual([file.name for file in self.there.iterdir()], ["gpu-check.md"])
        for subject, (result, _) in list(rows.items())[1:]:
            self.assertRegex(out, f"{subject} +" + result.replace("(", ".").replace(")", "."))

    def test_the_whole_ends_in_time(self):
        self.program("tests/test_devices_gather_test", HANGS)
        self.program("sanitizer", f'case "$*" in *facts*) ;; *) {HANGS} ;; esac')
        for name in ("mlp", "wide_mlp", "tiny"):
            self.program(f"bin/bench_{name}", HANGS)
        began = time.monotonic()
        self.run_it("--seconds", "50")
        self.assertLess(time.monotonic() - began, 50)
        rows = self.rows()
        self.assertRegex(rows["primitives: gather"][0], r"^not ended in \d+ s, no failure so far$")
        self.assertRegex(rows["memcheck: gather"][0], r"^not ended in \d+ s, no finding so far$")
        self.assertEqual(rows["benchmark mlp"], ("no figure: not ended in time", "-"))
        self.assertEqual(rows["benchmark adam_10000"], ("left out: no time is left", "-"))
        self.assertEqual(sum(name.startswith("benchmark ") for name in rows), 14)
        self.assertNotIn("FAILED", str(rows))

    def test_each_program_comes_under_each_tool(self):
        self.program("sanitizer", f'case "$*" in *facts*) ;; *) echo "$2 $5" >>"{self.folder}/order" ;; esac')
        self.run_it()
        order = [line.split()[0] for line in (self.folder / "order").read_text().splitlines()]
        self.assertEqual(order, ["memcheck", "racecheck", "synccheck"] * 2)

    def test_failures_name_their_logs(self):
        self.program("tests/test_devices_gather_test", 'echo "gather_test.cpp:9: Failure"; exit 1')
        self.program("sanitizer",
                     'case "$*" in *racecheck*segment*) echo "========= Error: Race reported"; exit 3 ;; esac')
        self.program("bin/bench_lstm", "echo 'bench_lstm: broken' >&2; exit 1")
        self.program("tests/test_gpu_measure",
                     f'[ "$1" != facts ] || {{ {FACTS}; exit; }}; echo "launch: lost" >&2; exit 1')
        out = self.run_it(code=1)
        self.assertIn(" 4 rows failed", out)
        rows = self.rows()
        self.assertEqual(rows["primitives: gather"],
                         ("gather_test.cpp:9: Failure; gpu-check-primitives-gather.log", "FAILED"))
        self.assertEqual(rows["racecheck: segment"],
                         ("Error: Race reported; gpu-check-racecheck-segment.log", "FAILED"))
        self.assertEqual(rows["benchmark lstm"], ("bench_lstm: broken; gpu-check-benchmark-lstm.log", "FAILED"))
        self.assertEqual(rows["measurements"], ("launch: lost; gpu-check-measurements.log", "FAILED"))
        self.assertIn("Failure", (self.there / "gpu-check-primitives-gather.log").read_text())

    def test_a_layer_without_a_kernel_is_skipped(self):
        self.program("bin/bench_lstm", f"echo '{NO_KERNEL.format('bench_lstm')}' >&2; exit 1")
        self.program("bin/tenon", f'case "$*" in --version) echo tenon 1 ;; *fraud*device=cuda*) echo '
                     f"'{NO_KERNEL.format('fraud.toml')}' >&2; exit 1 ;; *) shift; {TRAINED} ;; esac")
        self.run_it()
        skipped = 'skipped: layer "mixed" (attention) has native kernels for cpu alone'
        self.assertEqual(self.rows()["benchmark lstm"], (skipped, "-"))
        self.assertEqual(self.rows()["example fraud, one pass: on cuda"], (skipped, "-"))

    def test_a_sanitizer_that_does_not_run_is_no_failure(self):
        self.program("sanitizer", 'echo "========= Error: the driver is newer than this tool"; exit 1')
        self.run_it()
        self.assertIn("does not run here: ========= Error: the driver is newer", self.rows()["compute-sanitizer"][0])

    def test_pytorch(self):
        self.program("path/python3", 'case "$*" in *"import glob"*) exit 1 ;; *torch.cuda*) echo 2.15 ;; '
                     f'*benchmarks/run*) echo "$*" >>"{self.folder}/words"; '
                     'echo "$3, cuda, us: tenon 5; pytorch 10" ;; esac')
        self.run_it()
        self.assertEqual(self.rows()["PyTorch"][0], f"2.15, {self.check}/path/python3")
        self.assertEqual(self.rows()["benchmark mlp"], ("us: tenon 5; pytorch 10", "-"))
        self.assertRegex((self.folder / "words").read_text(), "run mlp --device cuda --peers pytorch .*--seconds 60 ")

    def test_a_python_that_is_too_old_for_pytorch_is_named(self):
        self.program("path/python3", 'case "$*" in *torch*) echo "PyTorch is there for Python 3.10.1; 3.11 is needed" ;; '
                     'esac >&2; exit 1')
        self.run_it()
        self.assertIn("left out: PyTorch is there for Python 3.10.1; 3.11 is needed, ",
                      self.rows()["benchmarks in PyTorch"][0])
        self.assertEqual(self.rows()["benchmark tiny"], ("us: tenon 2", "-"))

    def test_libraries_of_python_packages_are_found(self):
        packages = self.folder / "packages/nvidia/cu13/lib"
        packages.mkdir(parents=True)
        (packages / "libnvrtc.so.13").touch()
        self.program("path/python3", f'case "$*" in *"import glob"*) echo "{packages}" ;; *) exit 1 ;; esac')
        self.program("tests/test_gpu_measure", f'case "$LD_LIBRARY_PATH" in *"{packages}"*) ;; '
                     f'*) echo "NVRTC cannot be loaded" >&2; exit 2 ;; esac; [ "$1" != facts ] || {FACTS}')
        self.run_it()

    def test_a_folder_that_cannot_be_written(self):
        self.program("tests/test_devices_gather_test", 'echo "gather_test.cpp:9: Failure"; exit 1')
        out = self.run_it(code=1, there="/proc")
        self.assertIn("/proc cannot be written: the table is printed only", out)
        self.assertRegex(out, r"primitives: gather +gather_test.cpp:9: Failure +FAILED")
        self.environment["TMPDIR"] = "/proc"
        self.assertRegex(self.run_it(code=2), "no folder for temporary files: .*; TMPDIR chooses another one")

    def test_a_second_run(self):
        with open(self.folder / "lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.assertIn("another check runs on this machine", self.run_it(code=2))

    def test_an_interrupted_run_keeps_its_table(self):
        self.program("tests/test_devices_gather_test", f'echo $$ >"{self.folder}/hangs"; exec sleep 100')
        process = self.start()
        while not (self.folder / "hangs").exists() or not (self.folder / "hangs").read_text():
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        self.assertIn("0 rows failed", process.communicate(timeout=10)[0])
        self.assertEqual(process.returncode, 130)
        self.assertIn("s, interrupted", (self.there / "gpu-check.md").read_text())
        self.assertEqual(self.rows()["relu"], ("9 GB/s", "ok"))
        time.sleep(0.5)
        self.assertFalse(pathlib.Path(f"/proc/{(self.folder / 'hangs').read_text().strip()}").exists())

    def test_why_the_gpu_cannot_be_used(self):
        self.program("tests/test_gpu_measure", "echo 'cuInit: CUDA_ERROR_NO_DEVICE (100): no device' >&2; exit 2")
        self.environment["CUDA_VISIBLE_DEVICES"] = ""
        out = self.run_it(code=2)
        self.assertIn("gpu-check: the GPU cannot be used: cuInit: CUDA_ERROR_NO_DEVICE (100): no device\n", out)
        self.assertIn('gpu-check: CUDA_VISIBLE_DEVICES is ""\n', out)
        self.assertIn("/nvidiactl: the driver's kernel module is not loaded, or this container was started", out)
        (self.check / "devices/nvidiactl").touch()
        (self.check / "devices/nvidia0").mkdir()  # which nobody can open for writing
        out = self.run_it(code=2)
        self.assertNotIn("kernel module", out)
        self.assertRegex(out, r"gpu-check: \w+ cannot open .*/nvidia0: Is a directory \(drwx.*, owner \w+, group \w+\)\n")
        self.assertFalse((self.there / "gpu-check.md").exists())
        self.program("tests/test_gpu_measure", "kill -SEGV $$")
        self.assertIn("the GPU cannot be used: test_gpu_measure ended with code 139", self.run_it(code=2))

    def test_programs_of_another_machine(self):
        self.program("bin/tenon", "echo 'libc.so.6: version GLIBC_2.36 not found' >&2; exit 1")
        self.assertIn("the programs do not run here: libc.so.6: version GLIBC_2.36 not found", self.run_it(code=2))

    def test_usage(self):
        for words in (["--seconds"], ["--seconds", "5"], ["pack"], ["help"]):
            self.assertIn("[--seconds N]", self.run_it(*words, code=64))


if __name__ == "__main__":
    unittest.main()
