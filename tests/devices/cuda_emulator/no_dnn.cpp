// A libcudnn without functions: the emulated GPU has none, whatever the machine has on which a test runs.
// SPDX-License-Identifier: Apache-2.0
