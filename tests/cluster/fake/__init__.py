"""A Kubernetes cluster for tests, whose pods are local processes. README.md says what it plays.

SPDX-License-Identifier: Apache-2.0
"""
