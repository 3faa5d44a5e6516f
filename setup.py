"""Adds to a wheel what its kernels are built to, and its tag: one wheel serves every CPython from 3.11 on.

An editable install gets nothing of it: a checkout builds kernels when it first needs them. All else is in pyproject.toml.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
BUILT = Path("tektite", "kernels", "built")
MACHINES = {0x3E: "x86_64", 0xB7: "aarch64"}
"""What the two bytes behind the 18th of an ELF file mean."""


if "t" in sys.abiflags:
    raise SystemExit("Tektite needs a CPython with a global lock (GIL): this one, a free-threaded build, cannot run it")


class BuildKernels(build_py):
    """Builds kernels beside the Python files."""

    def run(self) -> None:
        if not self.editable_mode:  # what an earlier build left there would be packed as well
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if not self.editable_mode:
            command = [sys.executable, "-m", "tektite.kernels.build", "--copy-to", str(Path(self.build_lib) / BUILT)]
            for processor in os.environ.get(
                "TEKTITE_WHEEL_PROCESSORS", ""
            ).split():  # all that the machine may be, if empty
                command += ["--processor", processor]
            path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
            subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=True)


class TagWheel(bdist_wheel):
    """Says what the wheel runs on: CPython's stable interface, and the C library that its code asks for."""

    def get_tag(self) -> tuple[str, str, str]:
        platform = super().get_tag()[2]
        if platform.startswith("linux_"):
            asked, machines = [17], set()  # the oldest that installers know
            for path in (Path(self.bdist_dir) / BUILT).rglob("*.so"):
                code = path.read_bytes()
                machines.add(MACHINES[int.from_bytes(code[18:20], "little")])
                asked += map(int, re.findall(rb"GLIBC_2\.(\d+)", code))
            if len(machines) > 1:
                raise SystemExit("a wheel is for one kind of machine: TEKTITE_WHEEL_PROCESSORS names several")
            # An editable wheel has no kernels.
            machine = machines.pop() if machines else platform.removeprefix("linux_")
            platform = f"manylinux_2_{max(asked)}_{machine}"
        return "cp311", "abi3", platform


class WithMachineCode(Distribution):
    def has_ext_modules(self) -> bool:
        return True


setup(cmdclass={"build_py": BuildKernels, "bdist_wheel": TagWheel}, distclass=WithMachineCode)
