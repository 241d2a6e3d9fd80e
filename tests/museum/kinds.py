"""What hosts/kinds.cpp prints of each exhibit in kinds/, from the formulas of the exhibits, in float64.
SPDX-License-Identifier: Apache-2.0"""
import itertools
import math

X = [0.75, -1.5, 2.25, -0.25, 1.25, 3.5, -2.75, 0.5]
Y = [1.25, 0.5, 2.25, -1.75, 0.25, 2.0, -0.5, 3.0]
OFFSETS = [0, 3, 3, 4, 8]  # of the sequences
TABLE = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0], [9.0, 10.0]]


def rows_of(values, columns):
    return [values[i:i + columns] for i in range(0, len(values), columns)]


def flat(*lists):
    return [value for each in lists for value in (flat(*each) if isinstance(each, list) else [each])]


def mean(values):
    return sum(values) / len(values)


def derivatives(cost, at):
    """Central differences of a smooth cost of a list of numbers."""
    step = 1e-6

    def moved(k, by):
        return [value + by * (i == k) for i, value in enumerate(at)]

    return [(cost(moved(k, step)) - cost(moved(k, -step))) / (2 * step) for k in range(len(at))]


def uniform(element, seed=0, draw=0, step=0):
    """A draw, as tenon/program.h defines it."""
    x = [element // 4, draw, step & 0xFFFFFFFF, step >> 32]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [b >> 32 ^ x[1] ^ key[0], b & 0xFFFFFFFF, a >> 32 ^ x[3] ^ key[1], a & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return (x[element % 4] >> 8) / 2**24


# ---- layers


def opcode_values(x, still, y):
    """The outputs of museum.opcodes. still: x where no derivative flows, and for choices."""
    rows, places = rows_of(x, 2), range(len(x))
    whole = [math.trunc(4 * value) for value in still]
    positive = [abs(value) + 0.5 for value in x]
    picks = [[choose((0, 1), key=lambda c, r=row: r[c]) for row in rows_of(still, 2)] for choose in (max, min)]
    less = [still[i] < y[i] for i in places]

    def of(function, *operands):
        return [function(*(operand[i] for operand in operands)) for i in places]

    return [
        of(lambda a, b: a + b, x, y), of(lambda a, b: a - b, x, y), of(lambda a, b: a * b, x, y),
        of(lambda a, b: a / b, x, y), [x[i] if still[i] <= y[i] else y[i] for i in places],
        [x[i] if still[i] >= y[i] else y[i] for i in places], of(lambda a: -a, x), of(abs, x), of(math.floor, still),
        of(round, still), of(math.exp, x), of(math.expm1, x), of(math.tanh, x), of(math.erf, x), of(math.sin, x),
        of(math.cos, x), of(lambda a: math.copysign(1, a), still), of(math.sqrt, positive), of(math.log, positive),
        of(math.log1p, positive), of(math.pow, positive, y), [y[i] - sum(rows[i // 2]) for i in places],
        [y[i] - rows[i // 2][picks[0][i // 2]] for i in places], [y[i] - rows[i // 2][picks[1][i // 2]] for i in places],
        of(lambda a, b: a == b, still, y), less, of(lambda a, b: a <= b, still, y),
        of(lambda a, b: a and b < 0, less, still), of(lambda a, b: a or b < 0, less, still), of(lambda a: not a, less),
        [x[i] if less[i] else y[i] * y[i] for i in places], of(lambda a: a >= 0, still), whole,
        [whole[i] // (i % 2 + 1) for i in places], [whole[i] % (i % 2 + 1) for i in places],
        [x[i] * (i // 2) for i in places], [x[i] * (i % 2) for i in places], of(lambda a, b: a * b, x, still),
        [uniform(i) for i in places], of(lambda a: a * a, x), x, y]


def opcodes():
    x, y = X[:6], Y[:6]

    def cost(weight):
        values = opcode_values([x[i] * weight[i % 2] for i in range(6)], x, y)
        return sum((1 + k % 7) * mean(value) for k, value in enumerate(values))

    return flat([list(map(float, value)) for value in opcode_values(x, x, y)], derivatives(cost, [1, 1]))


def shape_rows(values, weight):
    """What museum.shapes makes of each sample, weighted."""
    result = []
    for row in rows_of(values, 4):
        m = rows_of([a * b for a, b in zip(row, weight, strict=True)], 2)
        lower = [0, *(0.5 * sum(m[1][k] * m[k][c] for k in range(2)) for c in range(2))]
        matrix = [[1, 2, 0], [0, 1, 0], [3, 0, 1]]
        result.append(lower + [sum(lower[k] * matrix[k][c] for k in range(3)) for c in range(3)])
    return result


def shapes(provided):
    slopes = derivatives(lambda weight: mean(flat(shape_rows(X, weight))), [0.5] * 4)
    return flat(shape_rows(X, [0.5] * 4), [value + 2 for value in X], slopes, int(provided))


def expansion():
    inner = [value + 3 for value in X[:4]]
    return flat([inner[i] * (3 + i % 2) for i in range(4)], [mean(inner[c::2]) / 2 for c in range(2)])


def metric():
    x, shares = rows_of(X[:6], 2), Y[:3]
    total = 2 * sum(shares)
    return [mean(X[:6]), 6, sum(sum(row) * share for row, share in zip(x, shares, strict=True)) / total, total]


def memory():
    half = [value / 2 for value in X[:4]]
    return flat(half, [2 * value for value in half], half, [3, 4, 5, 6])


def migration():
    return [2 * 2 * value + 2 * 0.25 + 7 for value in X[:6]]


def noise():
    half, result = [value / 2 for value in X[:4]], []
    for step in range(2):
        draws = [uniform(i, seed=9, step=step) for i in range(4)]
        result += [half[i] * draws[i] for i in range(4)]
        result += [sum(X[2 * r + c] * draws[2 * r + c] for r in range(2)) / 4 for c in range(2)]
    return result + [value / 2 for value in half]


def chain(fused):
    def results(weight):
        return [math.sqrt((X[i] * weight[i % 2])**2 + 1) for i in range(6)]

    return flat(results([0.5, 0.5]), derivatives(lambda w: mean(results(w)), [0.5, 0.5]), int(fused))


def product():
    weight, x = rows_of([1, 2, 3, -4], 2), rows_of(X[:6], 2)
    out = [[sum(row[k] * weight[k][c] for k in range(2)) for c in range(2)] for row in x]
    twice = 2  # two backward passes add
    return flat(out, [[twice * mean([row[k] for row in x]) / 2] * 2 for k in range(2)], [1, 2])


# ---- sequences, tables


def parts(values, offsets=None):
    offsets = offsets or OFFSETS
    return [values[a:b] for a, b in itertools.pairwise(offsets)]


def sums(lengths):
    result = [0]
    for length in lengths:
        result.append(result[-1] + length)
    return result


def sequence(make):
    """Rows of a layer, their offsets, and the gradient of the mean over samples of their sums."""
    def rows(weight):
        return make(parts([value * weight[0] for value in X]))

    return flat(rows([0.5]), sums(map(len, rows([0.5]))),
                derivatives(lambda w: sum(flat(rows(w))) / 4, [0.5]))


def first_rows():
    return sequence(lambda all_rows: [rows[:2] for rows in all_rows])


def strided_rows():
    return sequence(lambda all_rows: [[rows[2 * i] for i in range((len(rows) - 3) // 2 + 1)] if len(rows) >= 3 else []
                                      for rows in all_rows])


def joined_rows():
    others = parts(Y[:4], [0, 1, 3, 3, 4])
    return sequence(lambda all_rows: [rows + other for rows, other in zip(all_rows, others, strict=True)])


def chosen_rows():
    return sequence(lambda all_rows: [[value for value in rows if value > 0] for rows in all_rows])


def segments():
    rows = parts([value / 2 for value in X])
    ranks = [[sorted(range(len(row)), key=lambda i, r=row: -r[i]).index(i) for i in range(len(row))] for row in rows]

    def cost(weight):
        scaled = parts([value * weight[0] for value in X])
        return mean([sum(row) + 2 * max(row, default=0) for row in scaled])

    return flat([sum(row) for row in rows], [max(row, default=0) for row in rows], [[sum(row)] * len(row) for row in rows],
                OFFSETS, [[*row, 0][1:] for row in rows], OFFSETS, ranks, OFFSETS, derivatives(cost, [0.5]))


def inner():
    innermost = [sum(rows) for rows in parts(X, [0, 3, 4, 8])]
    return [sum(rows) for rows in parts(innermost, [0, 2, 2, 3])]


def lookup(native):
    ids, table, means = [3, 1, 3, 0], [list(row) for row in TABLE], [0.25] * 5
    order = [3, 1, 0]
    slopes = {number: ids.count(number) / 8 for number in order}
    for _ in range(3):
        for number, slope in slopes.items():
            means[number] += slope * slope
            table[number] = [p - 0.5 * 0.5 * slope / math.sqrt(means[number]) - 0.01 * 2 * p for p in table[number]]
    return flat([TABLE[number] for number in ids], order, [[slopes[number]] * 2 for number in order], table, int(native))


def sparse():
    offsets, ids = [0, 2, 2, 5], [1, 4, 0, 1, 3]
    entries = list(zip(ids, X, strict=False))
    out = [[sum(value * TABLE[i][c] for i, value in entries[a:b]) for c in range(2)]
           for a, b in itertools.pairwise(offsets)]
    return flat(out, [[sum(value for i, value in entries if i == number) / 6] * 2 for number in range(5)])


def minibatch(samples, number):
    """The arrays of the samples in a pass, as museum.samples makes them."""
    rows = [[float(i), float(r)] for i in samples for r in range(i % 3)]
    innermost = [[100 * number + r for r in range(1 if i % 2 == 0 else 3)] for i in samples]
    entries = [[(1, i + 0.5), (4, -1)][:1 + i % 2] for i in samples]
    return flat([i % 3 for i in samples], rows, sums(i % 3 for i in samples), innermost,
                sums(i % 2 + 1 for i in samples), sums(s + 1 for i in samples for s in range(i % 2 + 1)),
                [value for each in entries for _, value in each], sums(map(len, entries)),
                [i for each in entries for i, _ in each])


def reader():
    return flat([minibatch(samples, number) for number in (0, 1) for samples in ([0, 1, 2, 3], [4, 5])],
                minibatch([4, 5], 1), minibatch([1, 3, 5], 0), minibatch([5], 0), 3)


# ---- what came with 0.3

WORDS = [[0.5, -1], [1, 0.25], [-0.75, 0.5], [0.25, 1], [-1, -0.5]]
SCORES = [[1, -2, 0.5, 3, -1], [0.25, 1, -1.5, -2, 2]]
PROMPTS = [[3, 1, 4], [0]]


def recalled(ids):
    return [[2 * sum(WORDS[number][c] for number in ids[:r + 1]) + r for c in range(2)] for r in range(len(ids))]


def generation(length=9):
    result = []
    for prompt in PROMPTS:
        ids = list(prompt)
        while len(ids) < length:
            last = recalled(ids)[-1]
            ids.append(max(range(5), key=lambda i, row=last: sum(row[k] * SCORES[k][i] for k in range(2))))
        result += ids[len(prompt):]
    return result


def repeated():
    result, slopes = [], [0] * 4
    for values in (Y[:4], X[:4]) * 2:
        more = derivatives(lambda weight, row=values: mean(flat(shape_rows(row, weight))), [0.5] * 4)
        slopes = [a + b for a, b in zip(slopes, more, strict=True)]  # no update sets them to zero
        result += flat(shape_rows(values, [0.5] * 4), slopes)
    return result


def bodies(suffix, on_cpu):
    """{name of a line: its numbers} of layers with recorded bodies on a device."""
    lines = {"opcodes": opcodes(), "shapes": shapes(on_cpu), "expansion": expansion(), "metric": metric(),
             "memory": memory(), "first rows": first_rows(), "strided rows": strided_rows(), "joined rows": joined_rows(),
             "segments": segments(), "inner": inner(), "lookup": lookup(on_cpu), "sparse": sparse(), "noise": noise(),
             "chain": chain(on_cpu), "migration": migration()}
    return {name + suffix: values for name, values in lines.items()}


def expected():
    """Returns {name of a line of hosts/kinds.cpp: its numbers}."""
    return {"chosen rows": chosen_rows(), "product": product(), "reader": reader(), **bodies("", True),
            **bodies(" on museum.near", False), **bodies(" on museum.far", False)}


def expected_since_3():
    """Likewise of hosts/steps.cpp."""
    merged = [2 * (0 + 1), 1 + 1, 2 + 1, 3 + 1]  # of two replicas: sum, maximum, mean, first
    return {"whole": flat(*map(recalled, PROMPTS), sums(map(len, PROMPTS))), "generation": generation(),
            "exempt": [0, -1, 4, 5], "shards": merged, **bodies(" on museum.wide", False),
            "repeated on museum.wide": repeated()}
