"""PTX to C++: the kernels that NVRTC makes of CUDA C++, as functions for the fibers of cuda_emulator/kernel.h.

    ptx.py NVRTC SOURCE RESULT    compiles CUDA C++ (SOURCE) by the library NVRTC, and writes C++ (RESULT)

It runs in a process of its own, since NVRTC does not work beside the emulated driver. An instruction that it does not
know is an error with the text of the instruction. SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import os
import re
import sys

ARCHITECTURE = b"--gpu-architecture=compute_90"
BYTES = {"8": 1, "16": 2, "32": 4, "64": 8}
SPECIAL = {"%tid.x": "threadIdx.x", "%ctaid.x": "blockIdx.x", "%ntid.x": "blockDim.x", "%nctaid.x": "gridDim.x"}
SPACES = ("param", "global", "shared", "local", "const", "volatile", "nc")
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
               "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
ROUNDINGS = {"rz": "FE_TOWARDZERO", "rm": "FE_DOWNWARD", "rp": "FE_UPWARD"}
WHOLE = {"rni": "std::rint", "rzi": "std::trunc", "rmi": "std::floor", "rpi": "std::ceil"}
SHUFFLES = {"up": "kUp", "down": "kDown", "bfly": "kButterfly", "idx": "kIndex"}
# Instructions whose result is a function of operands of one type: {0}, {1}, {2}. Key: the name without roundings, type.
FUNCTIONS = {
    "add": "ptx::add({0}, {1})", "sub": "ptx::sub({0}, {1})", "mul": "ptx::mul({0}, {1})",
    "mul.lo": "ptx::mul({0}, {1})", "mul.hi": "ptx::high({0}, {1})", "mul.wide": "ptx::wide({0}, {1})",
    "mad.lo": "ptx::add(ptx::mul({0}, {1}), {2})", "mad.hi": "ptx::add(ptx::high({0}, {1}), {2})",
    "fma": "ptx::fused({0}, {1}, {2})", "div": "ptx::quotient({0}, {1})", "rem": "ptx::rest({0}, {1})",
    "min": "ptx::least({0}, {1})", "max": "ptx::most({0}, {1})", "neg": "ptx::negated({0})",
    "abs": "ptx::magnitude({0})", "sqrt": "std::sqrt({0})", "rcp": "1 / {0}", "ex2": "std::exp2({0})",
    "lg2": "std::log2({0})", "rsqrt": "1 / std::sqrt({0})", "sin": "std::sin({0})", "cos": "std::cos({0})",
    "tanh": "std::tanh({0})", "copysign": "std::copysign({1}, {0})", "and": "{0} & {1}", "or": "{0} | {1}",
    "xor": "{0} ^ {1}", "clz": "ptx::leading_zeros({0})",
    "add.cc": "ptx::add_carry({0}, {1}, false, ptx::carry)", "addc": "ptx::add_carry({0}, {1}, ptx::carry, ptx::unused)",
    "addc.cc": "ptx::add_carry({0}, {1}, ptx::carry, ptx::carry)", "sub.cc": "ptx::sub_borrow({0}, {1}, false, ptx::carry)",
    "subc": "ptx::sub_borrow({0}, {1}, ptx::carry, ptx::unused)",
    "subc.cc": "ptx::sub_borrow({0}, {1}, ptx::carry, ptx::carry)",
    "mad.lo.cc": "ptx::add_carry(ptx::mul({0}, {1}), {2}, false, ptx::carry)",
    "mad.hi.cc": "ptx::add_carry(ptx::high({0}, {1}), {2}, false, ptx::carry)",
    "madc.lo": "ptx::add_carry(ptx::mul({0}, {1}), {2}, ptx::carry, ptx::unused)",
    "madc.hi": "ptx::add_carry(ptx::high({0}, {1}), {2}, ptx::carry, ptx::unused)",
    "madc.lo.cc": "ptx::add_carry(ptx::mul({0}, {1}), {2}, ptx::carry, ptx::carry)",
    "madc.hi.cc": "ptx::add_carry(ptx::high({0}, {1}), {2}, ptx::carry, ptx::carry)",
}


class Unknown(Exception):
    """A part of PTX that the translator does not know."""


def compile_ptx(library, text):
    """The PTX of CUDA C++. library: the path of NVRTC."""
    nvrtc = ctypes.CDLL(library)
    program, size = ctypes.c_void_p(), ctypes.c_size_t()

    def content(of):
        getattr(nvrtc, f"nvrtcGet{of}Size")(program, ctypes.byref(size))
        memory = ctypes.create_string_buffer(size.value)
        getattr(nvrtc, f"nvrtcGet{of}")(program, memory)
        return memory.value.decode()

    if nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None) != 0:
        raise RuntimeError(f"{library} makes no program")
    options = (ctypes.c_char_p * 2)(ARCHITECTURE, b"--std=c++17")
    if nvrtc.nvrtcCompileProgram(program, len(options), options) != 0:
        raise RuntimeError(content("ProgramLog"))
    return content("PTX")


def statements(text):
    """Labels ("name:"), braces of blocks, headers of functions, and statements without their semicolons."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"^\.(version|target|address_size)[^\n]*", "", text, flags=re.MULTILINE)
    at = re.compile(r"\s*(?:([{}])|(\$?\w+:)|((?:\.visible |\.weak )?\.(?:entry|func)[^{;]*(?=[{;]))|([^;]*);)")
    position, end = 0, len(text.rstrip())
    while position < end:
        match = at.match(text, position)
        if match is None:
            raise Unknown(f'text "{text[position:position + 80]}"')
        position = match.end()
        found = next(part for part in match.groups() if part is not None)
        if match.group(3) and text[position] == ";":
            position += 1
            found += ";"
        if found.strip():
            yield " ".join(found.split())


def identifier(name):
    return name.replace("%", "").replace("$", "_")


class Translator:
    """The C++ of one module."""

    def __init__(self):
        self.lines = []
        self.sizes = {}      # bytes of the argument of each kernel
        self.registers = {}  # C++ type by name, of the function
        self.arrays = set()  # variables in memory
        self.entry = ""      # what the body of the function begins with

    def translate(self, text):
        for statement in statements(text):
            try:
                self.lines.append(self.statement(statement))
            except (IndexError, KeyError, ValueError, Unknown) as error:
                raise Unknown(f'PTX that the translator does not know: "{statement}" ({error})') from error
        sizes = set(self.sizes.values())
        if len(sizes) != 1:
            raise Unknown(f"kernels with arguments of {sorted(sizes)} bytes")
        header = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ptx.h")
        head = f'#include "{header}"\n'
        head += f"struct Arguments {{ alignas(8) unsigned char bytes[{sizes.pop()}]; }};\n"
        return head + "\n".join(self.lines) + "\n"

    def statement(self, text):
        if text == "{":
            text, self.entry = text + self.entry, ""
        if text[0] in "{}":
            return text
        if text.endswith(":"):
            return identifier(text) + ";"
        if re.match(r"(\.visible |\.weak )?\.(entry|func)", text):
            return self.function(text)
        if text.startswith(".pragma"):
            return ""
        if text.startswith(".reg"):
            return self.declare_registers(text)
        if text.startswith("."):
            return self.variable(text)
        guard = re.match(r"@(!?)%(\w+) (.*)", text)
        if guard:
            return f"if ({guard.group(1)}{guard.group(2)}) {{ {self.instruction(guard.group(3))} }}"
        return self.instruction(text)

    def function(self, text):
        """The head of a function. A kernel has one argument; other functions have addresses of theirs."""
        self.registers = {}
        kernel = ".entry" in text
        rest = re.sub(r"\([^)]*\)", "()", text.split(".entry" if kernel else ".func")[1])
        name = re.search(r"(\w+) ?\(\)", rest).group(1)
        parameters = re.findall(r"\.param (?:\.align \d+ )?\.\w+ (\w+)(?:\[(\d+)\])?", text)
        self.arrays.update(parameter for parameter, _ in parameters)
        if kernel:
            (parameter, size), = parameters
            self.sizes[name] = int(size)
            self.entry = f"unsigned char* const {parameter} = ptx_arguments.bytes;"
            return f'extern "C" void {name}(Arguments ptx_arguments)'
        arguments = ", ".join(f"unsigned char* {parameter}" for parameter, _ in parameters)
        head = f"static void {name}({arguments})"
        return head + (";" if text.endswith(";") else "")

    def declare_registers(self, text):
        kind, names = re.match(r"\.reg \.(\w+) (.*)", text).groups()
        made = []
        for name in re.split(r",\s*", names):
            ranged = re.match(r"(.*)<(\d+)>", name)
            made += [f"{ranged.group(1)}{k}" for k in range(int(ranged.group(2)))] if ranged else [name]
        made = [identifier(name) for name in made]
        register = "bool" if kind == "pred" else "ptx::u" + kind[1:]
        self.registers.update(dict.fromkeys(made, register))
        return f"{register} {', '.join(made)};"

    def variable(self, text):
        """Memory: shared by a block, of a thread, constant, or of arguments of a call."""
        match = re.match(r"(?:\.visible )?\.(shared|local|global|const|param) (?:\.align (\d+) )?\.[bfsu](\d+) "
                         r"(\w+)(?:\[(\d+)\])?(?: = (.*))?$", text)
        space, align, bits, name, count, values = match.groups()
        self.arrays.add(name)
        count = int(count or 1)
        static = "" if space in ("local", "param") else "static "
        # Alignment: at least that of an element.
        head = f"alignas({max(int(align or 1), BYTES[bits])}) {static}"
        if values is None:
            return f"{head}unsigned char {name}[{count * BYTES[bits]}];"
        return f"{head}ptx::u{bits} {name}[{count}] = {{{values.strip('{}')}}};"

    def value(self, operand, kind):
        """The C++ value of an operand that is read as .kind."""
        if kind == "pred":
            return ("!" if operand[0] == "!" else "") + identifier(operand.strip("!"))
        kind = "u" + kind[1:] if kind[0] == "b" else kind
        take = f"ptx::take<ptx::{kind}>"
        if operand in SPECIAL:
            return f"{take}({SPECIAL[operand]})"
        if re.fullmatch(r"%\w+|[a-z]\w*", operand) and identifier(operand) in self.registers:
            return f"{take}({identifier(operand)})"
        if operand in self.arrays:
            return f"reinterpret_cast<ptx::u64>({operand})"
        if re.fullmatch(r"0f[0-9a-fA-F]{8}", operand):
            return f"{take}(ptx::u32(0x{operand[2:]}u))"
        if re.fullmatch(r"0d[0-9a-fA-F]{16}", operand):
            return f"{take}(ptx::u64(0x{operand[2:]}ull))"
        if kind[0] == "f":
            raise Unknown(f"operand {operand}")
        return f"ptx::{kind}({int(operand, 0) & (1 << 64) - 1:#x}ull)"

    def give(self, register, value):
        """Sets a register."""
        if register == "_":
            return f"static_cast<void>({value});"
        name = identifier(register)
        return f"{name} = ptx::give<{self.registers[name]}>({value});"

    def address(self, operand, words):
        base, offset = re.fullmatch(r"\[([%$\w]+)(?:\+(-?\d+))?\]", operand).groups()
        start = self.value(base, "u64")
        if self.registers.get(identifier(base)) == "ptx::u32":
            if "shared" not in words:
                raise Unknown("an address of 32 bits")
            start = f"ptx::shared_address({identifier(base)})"
        return f"{start} + ptx::u64({int(offset or 0)}ll)"

    def instruction(self, text):
        name, _, rest = text.partition(" ")
        operands = re.findall(r"\{[^}]*\}|\([^)]*\)|\[[^\]]*\]|[^\s,]+", rest)
        words = name.split(".")
        special = getattr(self, "do_" + words[0], None)
        if special:
            return special(words[1:], operands)
        return self.computed(words, operands)

    def computed(self, words, operands):
        """An instruction of FUNCTIONS, with the rounding, flush and saturation that its name has."""
        kind = words[-1]
        parts = [word for word in words[:-1] if word not in ROUNDINGS and word not in ("rn", "ftz", "sat", "approx", "full")]
        values = [self.value(operand, kind) for operand in operands[1:]]
        if "ftz" in words:
            values = [f"ptx::flushed({value})" for value in values]
        result = FUNCTIONS[".".join(parts)].format(*values)
        for word in words:
            if word in ROUNDINGS:
                result = f"ptx::rounded({ROUNDINGS[word]}, [&] {{ return {result}; }})"
        if "ftz" in words:
            result = f"ptx::flushed({result})"
        if "sat" in words:
            result = f"ptx::saturated({result})"
        return self.give(operands[0], result)

    def do_not(self, words, operands):
        if words[0] == "pred":
            return self.give(operands[0], f"!{self.value(operands[1], 'pred')}")
        return self.give(operands[0], f"ptx::u{words[0][1:]}(~{self.value(operands[1], words[0])})")

    def do_mad(self, words, operands):
        """mad.wide adds a number of twice the bits; the others are in FUNCTIONS."""
        if words[0] != "wide":
            return self.computed(["mad", *words], operands)
        kind = words[1]
        product = f"ptx::wide({self.value(operands[1], kind)}, {self.value(operands[2], kind)})"
        return self.give(operands[0], f"ptx::add({product}, {self.value(operands[3], kind[0] + str(2 * int(kind[1:])))})")

    def do_shl(self, words, operands):
        return self.give(operands[0], f"ptx::shifted_left({self.value(operands[1], words[0])}, "
                                      f"{self.value(operands[2], 'u32')})")

    def do_shr(self, words, operands):
        return self.give(operands[0], f"ptx::shifted_right({self.value(operands[1], words[0])}, "
                                      f"{self.value(operands[2], 'u32')})")

    def do_bfi(self, words, operands):
        values = [self.value(operand, words[0]) for operand in operands[1:3]]
        values += [self.value(operand, "u32") for operand in operands[3:]]
        return self.give(operands[0], f"ptx::inserted({', '.join(values)})")

    def do_setp(self, words, operands):
        comparison, kind = words[0], words[-1]
        a, b = (self.value(operand, kind) for operand in operands[1:3])
        if comparison in ("num", "nan"):
            result = f"{'!' if comparison == 'num' else ''}({a} != {a} || {b} != {b})"
        elif kind[0] == "f" and comparison == "ne":
            result = f"({a} < {b} || {a} > {b})"
        elif comparison in COMPARISONS:
            result = f"({a} {COMPARISONS[comparison]} {b})"
        elif kind[0] == "f" and comparison[-1] == "u":
            ordered = COMPARISONS[comparison[:-1]]
            result = f"({a} != {a} || {b} != {b} || {a} {ordered} {b})"
        else:
            raise Unknown(comparison)
        if len(words) == 3:
            result = f"({result} {({'and': '&&', 'or': '||', 'xor': '!='})[words[1]]} {self.value(operands[3], 'pred')})"
        return self.give(operands[0], result)

    def do_selp(self, words, operands):
        bits = "b" + words[0][1:]
        a, b = (self.value(operand, bits) for operand in operands[1:3])
        return self.give(operands[0], f"{self.value(operands[3], 'pred')} ? {a} : {b}")

    def do_mov(self, words, operands):
        to, source = operands
        bits = words[0][1:]
        if to[0] == "{":
            parts = re.findall(r"[%\w]+", to)
            each = int(bits) // len(parts)
            whole = self.value(source, "b" + bits)
            return " ".join(self.give(part, f"ptx::take<ptx::u{each}>({whole} >> {k * each})")
                            for k, part in enumerate(parts))
        if source[0] == "{":
            parts = re.findall(r"[%\w]+", source)
            each = int(bits) // len(parts)
            return self.give(to, " | ".join(f"ptx::u{bits}({self.value(part, f'b{each}')}) << {k * each}"
                                            for k, part in enumerate(parts)))
        return self.give(to, self.value(source, words[0]))

    def do_cvta(self, words, operands):
        """All spaces are one here."""
        return self.give(operands[0], self.value(operands[1], words[-1]))

    def do_cvt(self, words, operands):
        to, source = words[-2:]
        value = self.value(operands[1], source)
        modes = words[:-2]
        if "ftz" in modes:
            value = f"ptx::flushed({value})"
        for mode in modes:
            if mode in WHOLE:
                value = f"{WHOLE[mode]}({value})"
            elif mode not in ("rn", "sat", "ftz"):
                raise Unknown(mode)
        if to[0] != "f":
            if "sat" in modes:
                raise Unknown("sat of integers")
            result = f"ptx::whole<ptx::{to}>({value})" if source[0] == "f" else f"static_cast<ptx::{to}>({value})"
        else:
            result = f"static_cast<ptx::{to}>({value})"
            if "sat" in modes:
                result = f"ptx::saturated({result})"
        return self.give(operands[0], result)

    def memory(self, words):
        """The number of values of an access, and their type."""
        *rest, kind = words
        count = 1
        for word in rest:
            if word in ("v2", "v4"):
                count = int(word[1])
            elif word not in SPACES:
                raise Unknown(word)
        return count, kind

    def do_ld(self, words, operands):
        count, kind = self.memory(words)
        registers = re.findall(r"[%\w]+", operands[0])
        ctype = "ptx::" + ("u" + kind[1:] if kind[0] == "b" else kind)
        # An operand of the address may be among the results.
        text = f"const ptx::u64 from = {self.address(operands[1], words)}; "
        return "{ " + text + " ".join(self.give(register, f"ptx::load<{ctype}>(from, {count}, {k})")
                                      for k, register in enumerate(registers)) + " }"

    def do_st(self, words, operands):
        count, kind = self.memory(words)
        values = re.findall(r"[-%\w]+", operands[1])
        return " ".join(f"ptx::store({self.address(operands[0], words)}, {count}, {k}, {self.value(value, kind)});"
                        for k, value in enumerate(values))

    def do_shfl(self, words, operands):
        if words[0] != "sync" or words[-1] != "b32":
            raise Unknown("another shuffle")
        register, _, predicate = operands[0].partition("|")
        inside = identifier(predicate) if predicate not in ("", "_") else "ptx::unused"
        arguments = ", ".join(self.value(operand, "u32") for operand in operands[1:])
        return self.give(register, f"ptx::shuffled(ptx::Shuffle::{SHUFFLES[words[1]]}, {arguments}, {inside})")

    def do_bar(self, words, operands):
        if words == ["sync"] and operands == ["0"]:
            return "__syncthreads();"
        if words == ["warp", "sync"] and operands == ["-1"]:
            return "__syncwarp();"
        raise Unknown("a barrier of some threads")

    def do_bra(self, _words, operands):
        return f"goto {identifier(operands[0])};"

    def do_ret(self, _words, _operands):
        return "return;"

    def do_call(self, _words, operands):
        results, name, arguments = operands if len(operands) == 3 else ("()", *operands)
        return f"{name}({', '.join(re.findall('[A-Za-z_]+[A-Za-z_0-9]*', results + ' ' + arguments))});"


def main():
    nvrtc, source, result = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    try:
        made = Translator().translate(compile_ptx(nvrtc, text))
    except (OSError, RuntimeError, Unknown) as error:
        print(error, file=sys.stderr)
        return 1
    with open(result, "w", encoding="utf-8") as file:
        file.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
