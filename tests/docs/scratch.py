"""Folders in which these tests work. SPDX-License-Identifier: Apache-2.0"""
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def emptied(folder):
    """Returns the folder, empty. Refuses a repository, and folders around this one: an argument may be wrong."""
    folder = pathlib.Path(folder).resolve()
    if (folder / ".git").exists() or folder == ROOT or folder in ROOT.parents:
        sys.exit(f"{folder} is not a folder for tests: it is not emptied")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
