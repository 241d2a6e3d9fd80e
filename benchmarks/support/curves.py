"""The curves of benchmarks/curves: their points, the costs that are fitted to them, and how both are shown.
SPDX-License-Identifier: Apache-2.0"""
import dataclasses
from collections.abc import Callable

from support import rounds


@dataclasses.dataclass(frozen=True)
class Point:
    x: int            # place on the curve
    mode: str         # the last argument of bench_curve
    threads: int = 0  # 0: as many as for the other curves


@dataclasses.dataclass(frozen=True)
class Curve:
    title: str
    unit: str         # of x
    points: Callable  # (processors of the machine) -> list of Point
    fit: Callable     # (points, seconds) -> text


def line(xs, ys):
    """Intercept and slope of y = a + b x with the least squares of relative errors, and the r^2 of these."""
    weights = [1 / (y * y) for y in ys]
    total = sum(weights)
    mean_x = sum(w * x for w, x in zip(weights, xs, strict=True)) / total
    mean_y = sum(w * y for w, y in zip(weights, ys, strict=True)) / total
    spread = sum(w * (x - mean_x) ** 2 for w, x in zip(weights, xs, strict=True))
    slope = sum(w * (x - mean_x) * (y - mean_y) for w, x, y in zip(weights, xs, ys, strict=True)) / spread
    intercept = mean_y - slope * mean_x
    left = sum(w * (y - intercept - slope * x) ** 2 for w, x, y in zip(weights, xs, ys, strict=True))
    around = sum(w * (y - mean_y) ** 2 for w, y in zip(weights, ys, strict=True))
    return intercept, slope, 1 - left / around if around > 0 else 1.0


def over(above, below):
    return above / below if below > 0 else float("inf")


def shown_seconds(seconds):
    for scale, unit in (1, "s"), (1e-3, "ms"), (1e-6, "us"):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def fit_layers(points, seconds):
    fixed, each, r2 = line([point.x for point in points], seconds)
    return f"{shown_seconds(max(fixed, 0))} + {shown_seconds(each)} for each layer (r^2 {r2:.4f})"


def fit_parameters(points, seconds):
    """Of sizes behind the caches: 28 bytes for a parameter."""
    far = [(point.x, time) for point, time in zip(points, seconds, strict=True) if point.x * 28 >= 32e6]
    fixed, each, r2 = line(*zip(*far, strict=True))
    cost = f"{shown_seconds(max(fixed, 0))} + {each * 1e12:.0f} ps for each parameter"
    return f"from 32 MB on {cost}, {over(28e-9, each):.3g} GB/s (r^2 {r2:.4f})"


def fit_tensors(points, seconds):
    fixed, each, r2 = line([point.x for point in points], seconds)
    return f"{shown_seconds(fixed)} + {shown_seconds(max(each, 0))} for each tensor (r^2 {r2:.4f})"


def fit_batch(points, seconds):
    latency, each, r2 = line([point.x for point in points], seconds)
    cost = f"{shown_seconds(max(latency, 0))} + {shown_seconds(each)} for each sample (r^2 {r2:.4f})"
    return f"{cost}; half the rate at {over(max(latency, 0), each):.1f} samples"


def fit_threads(points, seconds):
    """Amdahl: T(p) = T1 (s + (1 - s) / p) through one thread and all."""
    last = points[-1].x
    if last == 1:
        return "one processor: no fit"
    serial = (seconds[-1] / seconds[0] - 1 / last) / (1 - 1 / last)
    return f"{seconds[0] / seconds[-1]:.2f} times as fast on {last} threads; serial part {100 * serial:.0f} %"


CURVES = {
    "layers_8": Curve("layers of 8 x 8, 32 samples, SGD", "layers",
                      lambda _: [Point(n, f"layers:8:{n}") for n in (1, 4, 16, 64, 256, 1024, 4096)], fit_layers),
    "layers_256": Curve("layers of 256 x 256, 32 samples, SGD", "layers",
                        lambda _: [Point(n, f"layers:256:{n}") for n in (1, 4, 16, 64, 256)], fit_layers),
    "parameters": Curve("an update by Adam, one tensor", "parameters",
                        lambda _: [Point(n, f"parameters:{n}:1") for n in (10**3, 10**4, 10**5, 10**6, 2 * 10**6,
                                                                           10**7, 3 * 10**7, 10**8)], fit_parameters),
    "tensors": Curve("an update by Adam, 10 million parameters", "tensors",
                     lambda _: [Point(n, f"parameters:{10**7}:{n}") for n in (1, 10, 100, 1000, 10000)], fit_tensors),
    "batch": Curve("784-128-10, Adam", "samples",
                   lambda _: [Point(n, f"batch:{n}") for n in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)],
                   fit_batch),
    "threads": Curve("784-128-10, Adam, 128 samples", "threads",
                     lambda processors: [Point(n, "batch:128", n) for n in range(1, processors + 1)], fit_threads),
}


def shown(name, points, medians, limits, threads):
    """A table of Markdown, with the fit below."""
    curve = CURVES[name]
    of_threads = name == "threads"
    share = "times as fast as with one" if of_threads else f"for one of the {curve.unit}"
    rows = [curve.title + ("" if of_threads else f", {threads} thread{'s' if threads > 1 else ''}"), "",
            f"| {curve.unit} | a step | {share} | reached of the limit |", "|---:|---:|---:|---:|"]
    first = medians[points[0]]["seconds"]
    for point in points:
        seconds = medians[point]["seconds"]
        limit = rounds.limit_of(medians[point], limits[point.threads or threads])
        share = f"{first / seconds:.2f}" if of_threads else shown_seconds(seconds / point.x)
        rows.append(f"| {point.x:,} | {shown_seconds(seconds)} | {share} | {100 * limit / seconds:.0f} % |")
    return "\n".join([*rows, "", f"Fit: {curve.fit(points, [medians[point]['seconds'] for point in points])}.", ""])
