// The program whose precompiled headers the tests share. SPDX-License-Identifier: Apache-2.0
