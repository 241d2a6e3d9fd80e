"""The folders of the product at the top of the repository, for the scripts and tests that go through them.
SPDX-License-Identifier: Apache-2.0"""
PRODUCT = ("sdk", "base", "core", "record", "process", "check", "host", "weights", "new_job", "rerun", "launch", "cluster",
           "plugins", "bindings")
