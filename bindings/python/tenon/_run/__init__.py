"""Training, generation and gradient machines, and what they show.

SPDX-License-Identifier: Apache-2.0
"""
