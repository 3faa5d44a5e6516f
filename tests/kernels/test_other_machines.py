"""Kernels are built here for other kinds of machines, and run there: on this one, by an emulator."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from tektite.kernels import build, content

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.nightly,
    pytest.mark.skipif(
        platform.machine() != "x86_64" or not shutil.which(COMPILER) or not EMULATOR,
        reason=f"needs an x86-64 machine with {COMPILER} and qemu-aarch64",
    ),
]

# Sorts and consolidates rows (build), and reads them back: column by column, as kernels are called by native/call.c.
PROGRAM = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef int32_t (*Run)(int64_t *, void **, const int64_t *);

static Run find(const char *path, const char *name) {
    void *library = dlopen(path, RTLD_NOW);
    return library ? (Run)dlsym(library, name) : NULL;
}

int main(int count, char **paths) {
    Run head_of_array = find(paths[1], "kernel_head_of_array"), copy_out = find(paths[1], "kernel_copy_out");
    Run build = find(paths[2], "kernel_build");
    int64_t columns[3][5] = {{3, 1, 2, 1, 3}, {0, 0, 0, 0, 0}, {1, 1, 1, 1, -1}};
    int64_t made[16], built[16], out[3][2] = {{0}};
    void *error = NULL;
    int64_t array[] = {(int64_t)columns, 3, 5, 5};
    if (head_of_array(made, &error, array)) return 1;
    int64_t table[] = {((int64_t *)made[4])[1]};
    int64_t arguments[] = {(int64_t)table, 1, 1, 1, 1, 0};
    if (build(built, &error, arguments)) return 2;
    int64_t *head = (int64_t *)built[7 + 4];
    if (head[0] != 2) return 3;
    int64_t target[] = {head[1], (int64_t)out, 3, 2};
    if (copy_out(made, &error, target)) return 4;
    for (int row = 0; row < 2; row++) printf("%d %d %d\n", (int)out[0][row], (int)out[1][row], (int)out[2][row]);
    return 0;
}
"""


def test_what_calls_kernels_is_built_for_aarch64(tmp_path: Path) -> None:
    code = build.build_calls(tmp_path, "aarch64").read_bytes()
    assert int.from_bytes(code[18:20], "little") == 0xB7  # what an ELF file calls the machine
    assert content.calls_file("aarch64") != content.calls_file() and content.machine_of("aarch64") == "aarch64"


def test_kernels_for_aarch64_run(tmp_path: Path) -> None:
    modules = ["layout.rows", "sort.build"]
    build.build_libraries(modules, "aarch64", tmp_path, 2)
    (tmp_path / "program.c").write_text(PROGRAM)
    program = str(tmp_path / "program")
    subprocess.run([COMPILER, "-O1", str(tmp_path / "program.c"), "-o", program, "-ldl"], check=True)
    libraries = [str(tmp_path / content.library_file(module, "aarch64")) for module in modules]
    command = [EMULATOR, "-L", "/usr/aarch64-linux-gnu", program, *libraries]
    assert subprocess.check_output(command, text=True).splitlines() == ["1 0 2", "2 0 1"]
