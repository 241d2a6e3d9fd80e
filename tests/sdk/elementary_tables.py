#!/usr/bin/env python3
"""Compares sdk/include/tenon/elementary_tables.h with numbers in 60 digits: elementary_tables.py [--write]

--write writes the header. All numbers come from series in decimal arithmetic. SPDX-License-Identifier: Apache-2.0"""
import argparse
import decimal
import pathlib
import sys

HEADER = pathlib.Path(__file__).resolve().parents[2] / "sdk/include/tenon/elementary_tables.h"
INTERVALS = 128        # of [1, 2), for logarithms
HALVED_FROM = 53       # the first interval whose numbers are halved: 1 + 53 / 128 is close to the root of 2
QUADRANT_WORDS = 39    # of 2 / pi behind 64 zeros, as far as the exponent of the largest float64 reaches
ERF_NODES = range(4, 49)  # in eighths

BEGIN = """\
/* Tenon SDK: the numbers of tenon/elementary.h. SPDX-License-Identifier: MIT
 *
 * Written by tests/sdk/elementary_tables.py; a number in two parts is their sum. */
#ifndef TENON_ELEMENTARY_TABLES_H
#define TENON_ELEMENTARY_TABLES_H

#include <stdint.h>

/* clang-format off */

"""

decimal.getcontext().prec = 450
D = decimal.Decimal


def pi():
    """Machin's formula."""
    def arc_tangent(inverse):
        term, total, n = D(1) / inverse, D(0), 0
        while abs(term) > D(10) ** -440:
            total += term / (2 * n + 1) * (-1) ** n
            term /= inverse * inverse
            n += 1
        return total
    return 4 * (4 * arc_tangent(5) - arc_tangent(239))


def erf_series(x):
    """The integral of exp(-t^2) from 0 to x."""
    term, total, n = x, D(0), 0
    while n < 8 or abs(term) > D(10) ** -80:
        total += term / (2 * n + 1)
        n += 1
        term *= -x * x / n
    return total


def pair(value):
    """The float64 nearest to `value`, and that nearest to the rest."""
    high = float(value)
    return [high, float(value - D(high))]


def coarse_pair(value, bits):
    """The multiple of 2^-bits nearest to `value`, and the rest."""
    high = (value * 2 ** bits).to_integral_value() / 2 ** bits
    return [float(high), float(value - high)]


def hexadecimal(number):
    return number.hex().replace("0000000000000p", "p").replace("0x0.p+0", "0")


def lines(texts, per_line):
    rows = [", ".join(texts[i:i + per_line]) for i in range(0, len(texts), per_line)]
    return ",\n    ".join(rows)


def table(comment, declaration, texts, per_line):
    return f"/* {comment} */\nstatic const {declaration} = {{\n    {lines(texts, per_line)}}};\n"


def pairs(comment, name, values, width=2):
    cells = ["{" + ", ".join(hexadecimal(number) for number in value) + "}" for value in values]
    return table(comment, f"double {name}[{len(values)}][{width}]", cells, 4 // width)


def inverse(interval):
    """1024 / the middle of the interval, an integer; 1024 beside 1, where logarithms are close to 0."""
    if interval in (0, INTERVALS - 1):
        return 1024
    middle = (1 + (D(interval) + D("0.5")) / INTERVALS) / (2 if interval >= HALVED_FROM else 1)
    return int((1024 / middle).to_integral_value())


def header():
    circle, log_2 = pi(), D(2).ln()
    scale = 2 / circle.sqrt()  # erf is the integral times this
    inverses = [inverse(interval) for interval in range(INTERVALS)]
    words, fraction = ["0", "0"], 2 / circle
    for _ in range(QUADRANT_WORDS - 2):
        fraction *= 2 ** 32
        words.append(f"0x{int(fraction):08x}u")
        fraction -= int(fraction)
    terms, factorial = [], D(1)
    for n in range(15):
        factorial *= max(n, 1)
        terms.append(scale * (-1) ** n / (factorial * (2 * n + 1)) - (D("1.125") if n == 0 else 0))
    nodes = [[*pair(scale * erf_series(D(j) / 8)), float(scale * (-(D(j) / 8) ** 2).exp())] for j in ERF_NODES]
    constants = [("TN_LOG_2", coarse_pair(log_2, 42)), ("TN_LOG_2_BY_64", coarse_pair(log_2 / 64, 40)),
                 ("TN_LOG_2_NEAREST", pair(log_2)), ("TN_LOG2_E", pair(1 / log_2)), ("TN_HALF_PI", pair(circle / 2))]
    first, rest = coarse_pair(circle / 2, 32)[0], circle / 2 - D(coarse_pair(circle / 2, 32)[0])
    second, third = coarse_pair(rest, 65)
    result = [BEGIN]
    for name, (high, low) in constants:
        result.append(f"#define {name}_HIGH {hexadecimal(high)}\n#define {name}_LOW {hexadecimal(low)}\n")
    for name, number in zip(("FIRST", "SECOND", "THIRD"), (first, second, third), strict=True):
        result.append(f"#define TN_HALF_PI_{name} {hexadecimal(number)}\n")
    result += [
        "\n", pairs("2^(j / 64) in two parts.", "tn_exp_table", [pair(D(2) ** (D(j) / 64)) for j in range(64)]),
        "\n", table("1024 times a number close to the inverse of those in interval j of [1, 2), or their halves.",
                    f"uint16_t tn_log_inverses[{INTERVALS}]", [str(number) for number in inverses], 20),
        "\n", pairs("-log(tn_log_inverses[j] / 1024) in two parts, the first a multiple of 2^-42.", "tn_log_table",
                    [coarse_pair(-(D(number) / 1024).ln() if number != 1024 else D(0), 42) for number in inverses]),
        "\n", table("The bits of 2 / pi, behind 64 zeros.", f"uint32_t tn_quadrant_words[{QUADRANT_WORDS}]", words, 9),
        "\n", table("erf(x) / x - 9 / 8 as a series of x^2.", f"double tn_erf_series[{len(terms)}]",
                    [hexadecimal(float(term)) for term in terms], 4),
        "\n", pairs("erf(j / 8), from j = 4 on, in two parts, and its derivative.", "tn_erf_table", nodes, 3),
        "\n#endif\n"]
    return "".join(result)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    text = header()
    if parser.parse_args().write:
        HEADER.write_text(text, encoding="utf-8")
    elif HEADER.read_text(encoding="utf-8") != text:
        sys.exit(f"{HEADER.name} differs from what {pathlib.Path(__file__).name} --write writes")


if __name__ == "__main__":
    main()
