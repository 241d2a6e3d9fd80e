"""Tests of the translator of PTX: single instructions against their definitions, a whole warp, and what it refuses.
Usage: ptx_test.py COMPILER [FLAG...]. SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import ptx

COMPILER = sys.argv[1:]
EMULATOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cuda_emulator", "kernel.h")
HEAD = """
.visible .entry kernel0(
  .param .align 8 .b8 kernel0_param_0[8]
)
.maxntid 32, 1, 1
{
  .reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<19>; .reg .f32 %f<9>; .reg .b64 %rd<19>; .reg .f64 %fd<9>;
  ld.param.u64 %rd1, [kernel0_param_0];
  cvta.to.global.u64 %rd2, %rd1;
"""


def run(body, bytes_of_result=8, threads=1, data=b""):
    """The memory at %rd2 after a block ran the body, and whether the launch succeeded."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = os.path.join(folder, "module.cpp"), os.path.join(folder, "module.so")
        with open(source, "w", encoding="utf-8") as file:
            file.write(f'#include "{EMULATOR}"\n' + ptx.Translator().translate(HEAD + body + "\nret;\n}\n"))
            file.write('extern "C" int emulate(const void* arguments, unsigned threads) '
                       "{ return emulator::run(kernel0, 1, threads, arguments); }\n")
        subprocess.run([*COMPILER, "-shared", "-o", library, source], check=True)
        memory = ctypes.create_string_buffer(data.ljust(bytes_of_result, b"\0"), bytes_of_result)
        result = ctypes.CDLL(library).emulate(ctypes.byref(ctypes.c_uint64(ctypes.addressof(memory))), threads)
        return memory.raw, result == 0


def bits(number):
    return struct.unpack("<I", struct.pack("<f", number))[0]


# The value that each line leaves in %r0 (.b32) or %rd0 (.b64).
INSTRUCTIONS = (
    ("mov.u32 %r1, 1; shl.b32 %r0, %r1, 31;", 1 << 31),
    ("mov.u32 %r1, 1; shl.b32 %r0, %r1, 32;", 0),
    ("mov.u32 %r1, -8; shr.s32 %r0, %r1, 1;", 0xfffffffc),
    ("mov.u32 %r1, -8; shr.s32 %r0, %r1, 99;", 0xffffffff),
    ("mov.u32 %r1, -8; shr.u32 %r0, %r1, 28;", 15),
    ("mov.u32 %r1, 0x80000000; mul.hi.u32 %r0, %r1, 6;", 3),
    ("mov.u32 %r1, -3; mul.wide.s32 %rd0, %r1, 5;", (1 << 64) - 15),
    ("mov.u32 %r1, -3; mul.wide.u32 %rd0, %r1, 5;", 5 * 0xfffffffd),
    ("mov.u32 %r1, -3; mov.u64 %rd3, 20; mad.wide.s32 %rd0, %r1, 5, %rd3;", 5),
    ("mov.u32 %r1, 7; div.u32 %r0, %r1, 0;", 0xffffffff),
    ("mov.u32 %r1, -7; div.s32 %r0, %r1, 2;", 0xfffffffd),
    ("mov.u32 %r1, -7; rem.s32 %r0, %r1, 2;", 0xffffffff),
    ("mov.u32 %r1, -1; mov.u32 %r2, 1; add.cc.u32 %r3, %r1, %r2; addc.u32 %r0, 5, 5;", 11),
    ("mov.u32 %r1, 1; mov.u32 %r2, 2; sub.cc.u32 %r3, %r1, %r2; subc.u32 %r0, 5, 1;", 3),
    ("mov.u32 %r1, -1; mad.lo.cc.u32 %r2, %r1, %r1, %r1; madc.hi.u32 %r0, %r1, %r1, 0;", 0xffffffff),
    ("mov.u64 %rd3, 0x1234; bfi.b64 %rd0, 0xff, %rd3, 4, 4;", 0x12f4),
    ("mov.u64 %rd3, 0x10000; clz.b64 %r0, %rd3;", 47),
    ("mov.u32 %r1, 0x80; cvt.s32.s8 %r0, %r1;", 0xffffff80),
    ("mov.u32 %r1, -2; cvt.s64.s32 %rd0, %r1;", (1 << 64) - 2),
    ("mov.u32 %r1, -2; cvt.u64.u32 %rd0, %r1;", 0xfffffffe),
    ("mov.f32 %f1, 0f42F70000; cvt.rzi.s32.f32 %r0, %f1;", 123),
    ("mov.f32 %f1, 0fC2F70000; cvt.rmi.s32.f32 %r0, %f1;", (1 << 32) - 124),
    ("mov.f32 %f1, 0f4F800000; cvt.rzi.s32.f32 %r0, %f1;", 0x7fffffff),
    ("mov.f32 %f1, 0f7FC00000; cvt.rzi.s32.f32 %r0, %f1;", 0),
    ("mov.f32 %f1, 0fBF800000; cvt.rzi.u32.f32 %r0, %f1;", 0),
    ("mov.f32 %f1, 0f40200000; cvt.rni.f32.f32 %f2, %f1; mov.b32 %r0, %f2;", bits(2.0)),
    ("mov.f32 %f1, 0f40200000; cvt.sat.f32.f32 %f2, %f1; mov.b32 %r0, %f2;", bits(1.0)),
    ("mov.f32 %f1, 0f3F800000; add.rz.f32 %f2, %f1, 0fB3800000; mov.b32 %r0, %f2;", 0x3f7fffff),
    ("mov.f32 %f1, 0f3F800000; fma.rm.f32 %f2, %f1, %f1, 0f33000000; mov.b32 %r0, %f2;", 0x3f800000),
    ("mov.f32 %f1, 0f3F800000; fma.rp.f32 %f2, %f1, %f1, 0f33000000; mov.b32 %r0, %f2;", 0x3f800001),
    ("mov.f32 %f1, 0f7FC00000; min.f32 %f2, %f1, 0f3F800000; mov.b32 %r0, %f2;", bits(1.0)),
    ("mov.f32 %f1, 0f7FC00000; setp.lt.f32 %p1, %f1, %f1; selp.u32 %r0, 1, 2, %p1;", 2),
    ("mov.f32 %f1, 0f7FC00000; setp.geu.f32 %p1, %f1, %f1; selp.u32 %r0, 1, 2, %p1;", 1),
    ("mov.f32 %f1, 0f7FC00000; setp.ne.f32 %p1, %f1, 0f00000000; selp.u32 %r0, 1, 2, %p1;", 2),
    ("mov.u32 %r1, -1; setp.lt.u32 %p1, %r1, 1; selp.u32 %r0, 1, 2, %p1;", 2),
    ("mov.u32 %r1, -1; setp.lt.s32 %p1, %r1, 1; selp.u32 %r0, 1, 2, %p1;", 1),
    ("mov.f32 %f1, 0fC0000000; copysign.f32 %f2, %f1, 0f40400000; mov.b32 %r0, %f2;", bits(-3.0)),
    ("mov.f32 %f1, 0f00000001; ex2.approx.ftz.f32 %f2, %f1; mov.b32 %r0, %f2;", bits(1.0)),
    ("mov.u32 %r1, 1; mov.u32 %r2, 2; mov.b64 %rd0, {%r1, %r2};", 1 | 2 << 32),
    ("mov.u64 %rd3, 0x500000006; mov.b64 {_, %r0}, %rd3;", 5),
    ("mov.u32 %r0, 4; mov.pred %p1, -1; @%p1 mov.u32 %r0, 3; @!%p1 mov.u32 %r0, 9;", 3),
    ("mov.u32 %r0, 4; bra.uni $L_1; mov.u32 %r0, 5; $L_1: add.s32 %r0, %r0, -1;", 3),
)


class Instructions(unittest.TestCase):
    def test_results(self):
        """All in one kernel, each with its own block."""
        body = ""
        for k, (text, _) in enumerate(INSTRUCTIONS):
            register = "%rd0" if "%rd0" in text else "%r0"
            body += f"{{ {text} st.global.{'u64' if register == '%rd0' else 'u32'} [%rd2+{8 * k}], {register}; }}\n"
        memory, succeeded = run(body, 8 * len(INSTRUCTIONS))
        self.assertTrue(succeeded)
        for k, (text, expected) in enumerate(INSTRUCTIONS):
            with self.subTest(text):
                self.assertEqual(hex(struct.unpack_from("<Q", memory, 8 * k)[0]), hex(expected))

    def test_extends_what_it_loads(self):
        memory, _ = run("ld.global.s8 %r0, [%rd2]; ld.global.u8 %r1, [%rd2]; st.global.v2.u32 [%rd2], {%r0, %r1};",
                        data=b"\x81")
        self.assertEqual(struct.unpack("<II", memory), (0xffffff81, 0x81))

    def test_calls_functions(self):
        function = """
.func (.param .b32 func_retval0) plus(.param .b32 plus_param_0, .param .b32 plus_param_1)
{ .reg .b32 %r<4>; ld.param.u32 %r1, [plus_param_0]; ld.param.u32 %r2, [plus_param_1]; add.u32 %r3, %r1, %r2;
  st.param.b32 [func_retval0+0], %r3; ret; }
"""
        body = """{ .param .b32 param0; st.param.b32 [param0+0], 4; .param .b32 param1; st.param.b32 [param1+0], 5;
.param .b32 retval0; call.uni (retval0), plus, (param0, param1); ld.param.b32 %r0, [retval0+0]; }
st.global.u32 [%rd2], %r0;"""
        with unittest.mock.patch(__name__ + ".HEAD", function + HEAD):
            self.assertEqual(run(body, 4)[0], struct.pack("<I", 9))

    def test_shuffles(self):
        body = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 16; add.s64 %rd3, %rd2, %rd3; mov.u32 %r2, -1;\n"
        modes = (("up", 3, 0), ("down", 3, 31), ("bfly", 5, 31), ("idx", 7, 0x181f))
        for k, (mode, by, limits) in enumerate(modes):
            body += f"shfl.sync.{mode}.b32 %r3|%p1, %r1, {by}, {limits}, %r2; st.global.u32 [%rd3+{4 * k}], %r3;\n"
        memory, succeeded = run(body, 16 * 32, threads=32)
        self.assertTrue(succeeded)
        for lane, got in enumerate(struct.iter_unpack("<4I", memory)):
            up, down = (lane - 3 if lane >= 3 else lane), (lane + 3 if lane + 3 <= 31 else lane)
            self.assertEqual(got, (up, down, lane ^ 5, lane // 8 * 8 + 7))

    def test_barrier_and_shared_memory(self):
        body = """.shared .align 4 .b8 all[128]; mov.u32 %r1, %tid.x; mov.u64 %rd3, all; mul.wide.u32 %rd4, %r1, 4;
add.s64 %rd5, %rd3, %rd4; st.shared.u32 [%rd5], %r1; bar.sync 0; sub.s64 %rd6, %rd3, %rd4; ld.shared.u32 %r2, [%rd6+124];
add.s64 %rd7, %rd2, %rd4; st.global.u32 [%rd7], %r2;"""
        memory, succeeded = run(body, 128, threads=32)
        self.assertTrue(succeeded)
        self.assertEqual(struct.unpack("<32I", memory), tuple(reversed(range(32))))

    def test_shared_memory_by_32_bits(self):
        memory, _ = run(""".shared .align 4 .b8 all[128]; mov.b32 %r1, all; mov.u32 %r2, 77; st.shared.b32 [%r1+4], %r2;
ld.shared.b32 %r3, [all+4]; st.global.u32 [%rd2], %r3;""", 4)
        self.assertEqual(struct.unpack("<I", memory), (77,))

    def test_refuses_misaligned_accesses(self):
        self.assertTrue(run("ld.global.v2.u32 {%r0, %r1}, [%rd2+8];", 16)[1])
        self.assertFalse(run("ld.global.v2.u32 {%r0, %r1}, [%rd2+4];", 16)[1])

    def test_refuses_a_part_of_a_warp(self):
        self.assertFalse(run("mov.u32 %r1, 15; shfl.sync.bfly.b32 %r0|%p1, %r1, 1, 31, %r1;", 8, threads=32)[1])

    def test_names_what_it_does_not_know(self):
        for text in ("frob.u32 %r0, %r1", "ld.texture.u32 %r0, [%rd2]", "setp.ltx.f32 %p1, %f1, %f1",
                     "bar.red.popc.u32 %r0, 0, %p1",
                     "cvt.rn.satfinite.u32.f32 %r0, %f1", "add.u32 %r0, %unknown, 1", "atom.global.add.u32 %r0, [%rd2], 1"):
            with self.subTest(text), self.assertRaises(ptx.Unknown) as raised:
                run(text + ";")
            self.assertIn(f'"{text}"', str(raised.exception))


if __name__ == "__main__":

    unittest.main(argv=sys.argv[:1])
