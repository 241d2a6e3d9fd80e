"""Types that PyTorch lacks, and why they have no row. SPDX-License-Identifier: Apache-2.0"""

NOT_IN_TORCH = {}
