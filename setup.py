"""Builds in a fresh folder, as setuptools packages all that an earlier build left in its own."""

import atexit
import shutil
import tempfile

from setuptools import setup
from setuptools.command.build import build


class FreshBuild(build):
    """The build command, in a folder that goes when the process ends."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.build_base = tempfile.mkdtemp(prefix="primgraph-build-")
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)


setup(cmdclass={"build": FreshBuild})
