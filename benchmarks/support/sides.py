"""The sides of a workload: commands whose last line of output is a JSON object. SPDX-License-Identifier: Apache-2.0"""
import dataclasses
import os
import pathlib
import subprocess
import sys


@dataclasses.dataclass
class Side:
    name: str
    command: list
    environment: dict
    is_peer: bool = False  # the others are measured without it if it fails


def build_of(against, root):
    """A build folder as it is, or that of a commit, built in a work tree of its own."""
    folder = pathlib.Path(against)
    if (folder / "bin").is_dir():
        return folder.resolve()
    commit = subprocess.run(["git", "rev-parse", "--verify", "--short", f"{against}^{{commit}}"], cwd=root, check=False,
                            stdout=subprocess.PIPE, text=True).stdout.strip()
    if not commit:
        sys.exit(f"benchmarks/run: \"{against}\" is neither a build folder nor a commit")
    tree = root / "build-old" / commit
    if not tree.exists():
        subprocess.run(["git", "worktree", "add", "--detach", tree, commit], cwd=root, check=True)
    build = tree / "build-bench"
    subprocess.run(["cmake", "-G", "Ninja", "-S", tree, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DTENON_TESTS=OFF",
                    "-DTENON_BENCHMARKS=ON"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", build, "--target", "benchmarks"], check=True, stdout=subprocess.DEVNULL)
    return build


def of(workload, given, old, threads, folder, root):
    """Tenon first, since it writes what the others read."""
    def words(mode):
        """The arguments of a program: cpu is named by no word, which builds of earlier commits do not know."""
        return [str(threads), folder, *([mode] if mode else [])] if given.device == "cpu" else \
            [str(threads), folder, mode, given.device]

    mode = workload.get("mode", "")
    program = f"bin/bench_{workload['program']}"
    if not (given.build / program).exists():
        sys.exit(f"benchmarks/run: {given.build / program} does not exist; benchmarks/setup builds it")
    result = [Side("tenon", [given.build / program, *words(mode)], {})]
    if old is not None:
        result.append(Side("old", [old / program, *words(mode)], {}))
    wanted = {"all": workload["peers"], "none": []}.get(
        given.peers, [peer for peer in workload["peers"] if peer.split()[0] in given.peers.split(",")])
    written = root / "benchmarks" / workload["program"]
    if any((written / f"{peer.split()[0]}.py").exists() for peer in wanted) and not given.python.exists():
        sys.exit(f"benchmarks/run: {given.python} does not exist; benchmarks/setup installs the peers "
                 "(--peers none does without)")
    for peer in wanted:
        name, _, own = peer.partition(" ")
        if name == "tenon":
            result.append(Side(peer, [given.build / program, *words(own)], {}, True))
        elif (written / f"{name}.cpp").exists():
            result.append(Side(peer, [given.build / f"{program}_{name}", *words(own)], {}, True))
        else:
            # -P: the file is called as the package that it imports.
            command = [given.python, "-P", written / f"{name}.py", *words(own or mode)]
            result.append(Side(peer, command, {"PYTHONPATH": str(root / "benchmarks")}, True))
    if given.device == "cpu":
        result.append(Side("probe", [given.build / "bin/bench_probe", str(threads)], {}))
    return result


def environment(side):
    """Without the settings that a machine may have for other programs, which would slow a peer down."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OPENBLAS_", "OMP_", "MKL_"))}
    return kept | side.environment
