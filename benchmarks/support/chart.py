"""A chart of all workloads: how many times Tenon's time the others take. SPDX-License-Identifier: Apache-2.0"""
import html
import math

from support import table

WIDTH, LABEL, LINE = 960, 360, 18


def svg(workloads, results):
    """Bars on a logarithmic scale; the line at 1 is Tenon."""
    bars = []
    for result in results:
        for name, side in result["sides"].items():
            if name != "tenon":
                title = f"{result['workload']}, {table.place(result)}: {name}"
                workload = workloads[result["workload"]]
                text = f"{side['ratio']:.2f} ({table.shown(workload, side['median'])} {workload['unit']})"
                bars.append((title, side["ratio"], text))
    largest = max([2.0] + [max(ratio, 1 / ratio) for _, ratio, _ in bars])
    unit = (WIDTH - LABEL - 240) / (2 * math.log(largest))
    one = LABEL + unit * math.log(largest)
    size = f'width="{WIDTH}" height="{LINE * (len(bars) + 3)}"'
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">']
    lines.append(f'<text x="8" y="{LINE}">Time of each side as a multiple of Tenon\'s: right of the line Tenon is faster'
                 '</text>')
    for index, (title, ratio, text) in enumerate(bars):
        y = LINE * (index + 2)
        end = one + unit * math.log(ratio)
        lines.append(f'<text x="8" y="{y + 13}">{html.escape(title)}</text>')
        lines.append(f'<rect x="{min(one, end):.1f}" y="{y + 3}" width="{abs(end - one):.1f}" height="{LINE - 6}" '
                     f'fill="{"#2b7a4b" if ratio >= 1 else "#b3402e"}"/>')
        lines.append(f'<text x="{max(one, end) + 6:.1f}" y="{y + 13}">{html.escape(text)}</text>')
    lines.append(f'<line x1="{one:.1f}" x2="{one:.1f}" y1="{2 * LINE}" y2="{LINE * (len(bars) + 2)}" stroke="black"/>')
    return "\n".join([*lines, "</svg>", ""])
