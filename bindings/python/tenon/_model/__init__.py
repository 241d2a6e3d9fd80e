"""Topologies as Python builds them: layers, scans, branches, programs, kernels.

SPDX-License-Identifier: Apache-2.0
"""
