"""Figures as text and as JSON. SPDX-License-Identifier: Apache-2.0"""
import json


def shown(workload, seconds):
    """The figure of a workload: a time, or a rate."""
    value = workload["count"] / seconds if "count" in workload else seconds * workload["scale"]
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


FAR = 200e-9  # seconds of a line of a cache between two cores: those that share a cache are nearer


def distance(probe):
    """How far the cores are from one another, where several were measured."""
    seconds = probe.get("round_trip")
    return [f"cores {1e9 * seconds:.0f} ns apart ({'near' if seconds < FAR else 'far'})"] if seconds else []


def place(result):
    """Where a result was measured: the number of threads, or the device."""
    if result["device"] != "cpu":
        return result["device"]
    return f"{result['threads']} thread{'s' if result['threads'] > 1 else ''}"


def row(workload, result):
    head = f"{result['workload']}, {place(result)}"
    if not result["sides"]:
        return f"{head}: NO FIGURE: {result['problem']}"
    parts = []
    for name, side in result["sides"].items():
        text = f"{name} {shown(workload, side['median'])}"
        if "p99" in side:
            text += f" (p99 {shown(workload, side['p99'])})"
        if name != "tenon":
            text += f" = {side['ratio']:.2f} x"
        parts.append(text + f" [{shown(workload, side['least'])} to {shown(workload, side['most'])}]")
    if result["limit"]:
        share = result["limit"] / result["sides"]["tenon"]["median"]
        parts.append(f"limit {shown(workload, result['limit'])} ({100 * share:.0f} % reached)")
    parts += distance(result.get("probe", {}))
    parts += [f"NO FIGURE: {reason}" for reason in result["failed"].values()]
    noise = f", {result['left_out']} disturbed" if result["left_out"] else ""
    return f"{head}, {workload['unit']}: {'; '.join(parts)} ({result['rounds']} rounds{noise})"


def best(results, workload, name):
    """The number of threads and the seconds with which a side is fastest."""
    found = [(result["sides"][name]["median"], result["threads"]) for result in results
             if result["workload"] == workload and name in result["sides"]]
    return min(found) if found else None


def summary(workloads, results):
    """One line a workload: each side's best of all numbers of threads, and the ratio of the best peer to Tenon."""
    lines = ["", "| workload | unit | tenon | best other | other / tenon | share of limit |", "|---|---|---|---|---|---|"]
    threads = all(result["device"] == "cpu" for result in results)
    for name in dict.fromkeys(result["workload"] for result in results):
        workload = workloads[name]
        tenon = best(results, name, "tenon")
        if tenon is None:
            lines.append(f"| {name} | {workload['unit']} | no figure | | | |")
            continue
        others = {other for result in results if result["workload"] == name for other in result["sides"]} - {"tenon"}
        seconds, other = min(((*best(results, name, other)[:1], other) for other in others), default=(None, None))
        limits = [result["limit"] / result["sides"]["tenon"]["median"] for result in results
                  if result["workload"] == name and result["sides"] and result["limit"]
                  and result["threads"] == tenon[1]]
        ours = shown(workload, tenon[0]) + (f" ({tenon[1]})" if threads else "")
        lines.append(f"| {name} | {workload['unit']} | {ours} | "
                     + (f"{other} {shown(workload, seconds)} | {seconds / tenon[0]:.2f} | " if other else "- | - | ")
                     + (f"{100 * limits[0]:.0f} % |" if limits else "- |"))
    lines += ["", "In brackets: the number of threads with which Tenon is fastest."] * threads
    libraries = {(name.split()[0], side["library"]) for result in results for name, side in result["sides"].items()
                 if "library" in side}
    return "\n".join(lines + [f"Products of {name}: {library}." for name, library in sorted(libraries)])


def as_json(results):
    return json.dumps(results, indent=1) + "\n"
