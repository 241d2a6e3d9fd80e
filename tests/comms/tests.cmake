# Tests of communicators. SPDX-License-Identifier: Apache-2.0
tenon_test(comms/loop_test)
