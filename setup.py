"""Builds in a fresh folder, and with a description that stands alone.

Setuptools packages all that an earlier build left in its own folder. A package index shows the
description without the files beside it: there README.md has no pictures, and links to files are
plain text.
"""

import atexit
import re
import shutil
import tempfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build import build

PICTURE = re.compile(r"!\[[^]]*\]\((?!https?:)[^)]*\)\n*")
LINK = re.compile(r"\[([^]]*)\]\((?![a-z]+:|#)[^)]*\)")


class FreshBuild(build):
    """The build command, in a folder that goes when the process ends."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.build_base = tempfile.mkdtemp(prefix="primgraph-build-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)


def description() -> str:
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    return LINK.sub(r"\1", PICTURE.sub("", text))


setup(
    cmdclass={"build": FreshBuild},
    long_description=description(),
    long_description_content_type="text/markdown",
)
