"""Mutants of the kernels of the device cuda: each small change of a kernel's text must make a test of primitives fail on
the emulated GPU. Usage: cuda_mutants.py FOLDER_OF_TESTS FOLDER_OF_EMULATOR [WORD...]; a word chooses mutants.
SPDX-License-Identifier: Apache-2.0
"""
import os
import subprocess
import sys
import tempfile

# (test, old text, new text). The first occurrence in a text is changed, so it has to be the right one.
MUTANTS = (
    # Reductions that all kernels share.
    ("gather", "v = R::join(v, __shfl_xor_sync(0xffffffffu, v, step));", "v = __shfl_xor_sync(0xffffffffu, v, step);"),
    ("gather", "for (int k = 1; k < 8; ++k) v = R::join(v, part[k]);", "for (int k = 1; k < 7; ++k) v = R::join(v, part[k]);"),
    ("gather", "if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;\n  __syncthreads();",
     "if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;"),
    ("gather", "for (Int64 k = threadIdx.x; k < count; k += 256) v = R::join(v, ((const T*)buffer)[k]);",
     "for (Int64 k = threadIdx.x; k + 1 < count; k += 256) v = R::join(v, ((const T*)buffer)[k]);"),
    # Four elements at once.
    ("cuda_device", "return at + 4 <= count &&", "return at + 3 <= count &&"),
    ("cuda_device", "to[k] = Value<V>::of(first[at + k]);", "to[k] = Value<V>::of(first[at]);"),
    ("cuda_device", "if (request == 2) four = *place;", ""),
    ("cuda_device", "store<E>(to, at + k, from[k], request);", "store<E>(to, at + k, from[0], request);"),
    ("cuda_device", "if (at + k < count) store<E>", "store<E>"),
    # Checks of ids.
    ("gather", "id < 0 || id >= height", "id < 0 || id > height"),
    ("gather", "id < 0 || id >= height", "id >= height"),
    ("gather", "&& i < first) first = i;", ") first = i;"),
    ("gather", "*fault = {code, id_at(ids, wide, first), first, height};", ";"),
    ("rows", "(const Int64*)a.buffers[2] + 512 * p,", "(const Int64*)a.buffers[2],"),
    # Gather, its sums, its derivative.
    ("gather", "* width + e - i * width", "* width + e - i"),
    ("gather", "if (first > 0 && items[first - 1].id == id) continue;", ""),
    ("gather", "items[j].id == id; ++j)\n        sum +=", "items[j].id == id; j += 2)\n        sum +="),
    ("gather", "|| a.requests[0] == 2) return;\n  const Int64 count = HEIGHT", ") return;\n  const Int64 count = HEIGHT"),
    ("segment", "sum = i == of.first ? value : sum + value;", "sum = i == of.first ? value : value + value;"),
    ("segment", "const Int64 s = divide(e, width), c = e - s * width;", "const Int64 s = divide(e, width), c = 0;"),
    # Sorts.
    ("gather", "before(items[at], item) : !before(item, items[at])", "before(items[at], item) : before(items[at], item)"),
    ("gather", "base + 2 * width < n ? base + 2 * width : n", "n"),
    ("gather", "return (left ? i : base + i - middle) + low - first;", "return i + low - first;"),
    ("gather", "1024LL << a.step", "1024LL << a.step + 1"),
    ("gather", "(const Item*)(a.step % 2 == 0 ?", "(const Item*)(a.step % 2 == 1 ?"),
    ("gather", "      __syncthreads();\n      for (int i = threadIdx.x; i < n; i += 256) to[",
     "      for (int i = threadIdx.x; i < n; i += 256) to["),
    ("gather", "    __syncthreads();\n    for (int i = threadIdx.x; i < n; i += 256) ((Item*)",
     "    for (int i = threadIdx.x; i < n; i += 256) ((Item*)"),
    ("argsort", "return a == a;", "return b == b;"),
    ("argsort", "const Int64 row = divide(block, tiles), start = (block - row * tiles) * 1024;",
     "const Int64 row = divide(block, tiles), start = 0;"),
    ("argsort", "items[row * columns + e - row * each].at", "items[e].at"),
    # Prefix sums.
    ("prefix_sum", "if (lane >= step) sum += other;", "if (lane > step) sum += other;"),
    ("prefix_sum", "__syncthreads();  // `warp` of an earlier call was read by all", ""),
    ("prefix_sum", "if (lane == 31) warp[threadIdx.x / 32] = sum;\n  __syncthreads();",
     "if (lane == 31) warp[threadIdx.x / 32] = sum;"),
    ("prefix_sum", "for (int k = 0; k < threadIdx.x / 32; ++k) first", "for (int k = 0; k + 1 < threadIdx.x / 32; ++k) first"),
    ("prefix_sum", "carry += all;", "carry = all;"),
    ("prefix_sum", "kExclusive ? until : next", "next"),
    # Segments.
    ("segment", "if (list[middle] <= value)", "if (list[middle] < value)"),
    ("segment", "all = r == of.first ? value : JOIN(all, value);", "all = JOIN(all, value);"),
    ("segment", "by < 0 ? by >= of.first - row : by < of.end - row", "by < 0 ? by > of.first - row : by < of.end - row"),
    ("segment", "by < 0 ? by >= of.first - row : by < of.end - row", "row + by >= 0 && row + by < ROWS"),
    ("segment", "a.segment != b.segment ? a.segment < b.segment :", ""),
    ("segment", "= j - OFFSETS[items[j].segment];", "= j;"),
    # Moves.
    ("move", "|| a.requests[0] == 2) return;\n  Int64 count = 1;", ") return;\n  Int64 count = 1;"),
    ("move", "to_step[k] = to.of[axis];", "to_step[k] = to.of[k];"),
    ("move", "from_start += part[1 + k] * from_step[k];", ""),
    ("move", "to_start += part[1 + kRank + axis] * to_step[k];", "to_start += part[1 + kRank + k] * to_step[k];"),
    ("move", "a.step * (9 * kRank + 1)", "a.step * (9 * kRank)"),
    ("move", "*to = request == 2 ? (T)(*to + value) : value;", "*to = value;"),
    # Rows.
    ("rows", "source.i >= count_of(a, source.part)", "source.i > count_of(a, source.part)"),
    ("rows", "offsets == nullptr ? source.i : segment_of(offsets, segments, source.i)", "source.i"),
    ("rows", "if (low < count && items[low].id == id) HELD[low] = (int)row;", ""),
    ("rows", "if (low < count && items[low].id == id) HELD", "if (low < count) HELD"),
    ("rows", "is_first(items, j) && HELD[j] < 0 ? 1 : 0", "is_first(items, j) ? 1 : 0"),
    ("rows", "PLACE[i] = next;", "PLACE[i] = next - before_tile;"),
    ("rows", "      __syncthreads();\n      sums[1 - from]", "      sums[1 - from]"),
    ("rows", "rows_before(a) + before_tile > a.rows.capacity", "before_tile > a.rows.capacity"),
    ("rows", "E sum = held ? *to : 0;", "E sum = 0;"),
    ("rows", "*a.rows.count = rows_before(a) + *NEW_ROWS;", "*a.rows.count = *NEW_ROWS;"),
    ("rows_update", "a.rows.ids[r] * columns + c", "r * columns + c"),
    ("rows_update", "*a.rows.count != used(a.rows)", "false"),
    # Convolutions, and the windows over images.
    ("conv", "__syncthreads();  // the tiles before were read by all", ""),
    ("conv", "      __syncthreads();\n      add_terms", "      add_terms"),
    ("conv", "if (index < 0 || index >= w.images[i]) return -1;", "if (index >= w.images[i]) return -1;"),
    ("conv", "if (index < 0 || index >= w.images[i]) return -1;", "if (index < 0) return -1;"),
    ("conv", "+ tap.at[i] * w.dilation[i];", "+ tap.at[i];"),
    ("conv", "if (from < 0 || index * w.stride[i] != from", "if (from < 0"),
    ("conv", "if (from < 0 || index * w.stride[i] != from", "if (index * w.stride[i] != from"),
    ("conv", "|| index >= w.places[i]) return -1;", ") return -1;"),
    ("conv", "line < count ? sample : -1", "sample"),
    ("conv", "line < count ? number : -1", "number"),
    ("conv", "p.x = (const F*)a.inputs[0] + group * p.inner;\n  p.y = (const F*)a.inputs[1] + group * p.columns * p.depth;",
     "p.x = (const F*)a.inputs[0];\n  p.y = (const F*)a.inputs[1] + group * p.columns * p.depth;"),
    ("conv", "p.y = (const F*)a.inputs[1] + group * p.columns * p.depth;", "p.y = (const F*)a.inputs[1];"),
    ("conv", "p.y = (const F*)a.inputs[1] + group * p.outer;", "p.y = (const F*)a.inputs[1];"),
    ("conv", "pieces(p.depth, 256, a.table[21])", "pieces(p.depth, 256, 64)"),
    ("conv", "(part + 1) * length < p.depth ? (part + 1) * length : p.depth", "p.depth"),
    ("conv", "((F*)a.buffers[0])[part * elements + at]", "((F*)a.buffers[0])[at]"),
    ("conv", "for (Int64 part = 0; part < parts; ++part) sum", "for (Int64 part = 1; part < parts; ++part) sum"),
    ("conv", "sum[i][j], a.requests[0]", "sum[i][j], 1"),
    ("conv", "high = divide(tile, across);", "high = 0;"),
    # Pooling.
    ("pool",
     "tap = 0; tap < taps; ++tap) {\n    const int at = element_at(w, place, spot_of(w.kernel, tap));\n    if (at >= 0)",
     "tap = 1; tap < taps; ++tap) {\n    const int at = element_at(w, place, spot_of(w.kernel, tap));\n    if (at >= 0)"),
    ("pool", "elements_of(w.kernel) - 1; tap >= 0;", "elements_of(w.kernel) - 1; tap > 0;"),
    ("pool", "value > largest ||", "value >= largest ||"),
    ("pool", "|| (value != value && largest == largest)", ""),
    ("pool", "value != value && largest == largest", "value != value"),
    ("pool", "if (a.requests[0] != 0) put((F*)a.outputs[0] + e, largest, a.requests[0]);",
     "put((F*)a.outputs[0] + e, largest, a.requests[0]);"),
    ("pool", "*fault = {code, id_at(ids, wide, first), first, height};", ";"),
    ("pool", "elements_of(w.images), (Int64*)a.buffers[0]", "elements_of(w.images) + 1, (Int64*)a.buffers[0]"),
    ("pool", "made.sample * images + POSITIONS[e]", "POSITIONS[e]"),
    ("pool", "|| tap * w.dilation[i] != from || tap >= w.kernel[i]) stray = 1;", ") stray = 1;"),
    ("pool", "if (from < 0 || tap * w", "if (tap * w"),
    ("pool", "stray = across_block<Max>(stray);", ""),
    ("pool", "k += stray ? 1 : -1", "k += stray ? 2 : -1"),
    ("pool", "&& POSITIONS[at] == made.number", ""),
    # Resizing.
    ("resize", "s == reads[0] + 1 ? high : 0.0", "0.0"),
    ("resize", "(reads[1] != 0 ? 2 : 1)", "1"),
    ("resize", "+ 2 * axes.to[axis] + 2 * at;", "+ 2 * at;"),
    ("resize", "sample * read[0] * read[1] * read[2] * channels", "0"),
    ("resize", "((Int64)x * read[1] + y)", "((Int64)x * read[0] + y)"),
    # Products.
    ("gemm", "__syncthreads();  // the tiles before were read by all", ""),
    ("gemm", "      __syncthreads();\n      add_terms", "      add_terms"),
    ("gemm", "left[k][y + 16 * i] * right[k][x + 16 * j]", "left[k][y + 16 * i] * right[k][y + 16 * j]"),
    ("gemm", "from_a = (const F*)a.inputs[0] + b * m * depth", "from_a = (const F*)a.inputs[0]"),
    ("gemm", "start += 16", "start += 15"),
    ("gemm", "alpha * sum[i][j], a.requests[0]", "alpha * sum[i][j], 1"),
    ("gemm", "const Int64 line = divide(block, across), b = divide(line, down);",
     "const Int64 line = divide(block, across), b = 0;"),
    # Factors of products by cublasLt.
    ("cuda_blas", "(bits + 0x7fffu + (bits >> 16 & 1u)) >> 16", "bits >> 16"),
    ("cuda_blas", "const Int64 first = batch * m * k,", "const Int64 first = m * k,"),
    ("cuda_blas", "all = first + batch * k * n;", "all = first + batch * k * n - 1;"),
    ("cuda_blas", "const int of = e < first ? 0 : 1;", "const int of = e <= first ? 0 : 1;"),
    ("cuda_blas", "const Int64 at = of == 0 ? e : e - first;", "const Int64 at = e;"),
    ("cuda_blas", "all; e += gridDim.x * 256LL", "all; e += gridDim.x * 257LL"),
)


def libraries(tests, emulator, test):
    """The folders of libraries for a test; none if they are not built here."""
    if test != "cuda_blas":
        return emulator
    fakes = os.path.join(tests, "cuda_fakes")
    return f"{fakes}:{emulator}" if os.path.isdir(fakes) else ""


def outcome(tests, emulator, test, old, new):
    """'fails', or what is wrong with the mutant."""
    with tempfile.TemporaryDirectory() as folder:
        seen = os.path.join(folder, "seen")
        environment = dict(os.environ, TENON_TEST_DEVICE="cuda", LD_LIBRARY_PATH=libraries(tests, emulator, test),
                           XDG_CACHE_HOME="", HOME="", TENON_EMULATED_MOST_BLOCKS="3", TENON_MUTANT_OLD=old,
                           TENON_MUTANT_NEW=new, TENON_MUTANT_SEEN=seen)
        left_out = ("*.Refuses", "*.RefusesOther*", "*.RefusesNegative*", "*.RefusesToAdd*", "*.ManyAtOnce",
                    "*.SmallOnesAtOnce", "*.LargeProductsInTiles")
        command = [os.path.join(tests, f"test_devices_{test}_test"), "--gtest_brief=1", "--gtest_fail_fast",
                   f"--gtest_filter=-{':'.join(left_out)}"]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        except subprocess.TimeoutExpired:
            return "fails"
        if not os.path.exists(seen):
            return "no kernel has the old text"
        if "do not compile" in done.stdout:
            return "does not compile"
        return "passes" if done.returncode == 0 else "fails"


def main():
    tests, emulator, words = sys.argv[1], sys.argv[2], sys.argv[3:]
    bad = count = 0
    for test, old, new in MUTANTS:
        if words and not any(word in (test, old) or word in old for word in words):
            continue
        if not libraries(tests, emulator, test):
            continue
        count += 1
        result = outcome(tests, emulator, test, old, new)
        if result != "fails":
            bad += 1
            print(f"{test}: {result}: {old!r} -> {new!r}", flush=True)
    print(f"{count} mutants, {bad} not noticed")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(main())
