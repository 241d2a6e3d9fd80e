"""What every room of the package uses: arrays, arguments, the host.

SPDX-License-Identifier: Apache-2.0
"""
