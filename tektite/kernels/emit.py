"""Compiles kernels to object files, by Numba, in a process that builds them.

Promise: an object has one symbol for others, `int32_t kernel_NAME(int64_t *result, Failure **error, const int64_t *words)`,
whose arguments `native/call.c` describes. It needs of others only what `native/runtime.c` and the C library have, and nothing of
Python.

Numba compiles for the process that it runs in. Here it is kept from producing machine code; the optimised module of each kernel
is taken from it and compiled for the processor that the objects are for.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba.core import codegen, sigutils
from numba.core.registry import cpu_target
from numba.core.runtime import nrtdynmod

from tektite.kernels.compile import Kernel, kinds
from tektite.kernels.content import NUMBA
from tektite.kernels.toolchain import BUILD_FOR

TRIPLES = {"aarch64": "aarch64-unknown-linux-gnu"}
"""What is built for another kind of machine than this one may be: x86-64 builds for aarch64 as well."""


def prepare() -> None:
    """Check Numba, and keep it from producing machine code: it would do so for every function that kernels call."""
    if numba.__version__ != NUMBA:
        raise SystemExit(f"kernels are built by Numba {NUMBA}, and {numba.__version__} is installed")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    nrtdynmod._define_atomic_inc_dec = _plain_inc_dec
    # Numba first compiles parts of its own run time, for which it needs machine code.
    assert cpu_target.target_context is not None
    producers: Any = codegen.JITCPUCodegen
    producers._add_module = lambda self, module: None
    producers.set_env = lambda self, name, environment: None
    libraries: Any = codegen.JITCodeLibrary
    libraries._finalize_specific = lambda self: None
    libraries.get_pointer_to_function = lambda self, name: self._ensure_finalized() or 0


def _plain_inc_dec(module: Any, operation: str, ordering: str) -> Any:
    """A function that adds 1 to a count of references, or subtracts it, and returns the new count, as Numba's own does, but not
    atomically: arrays of a kernel belong to one call of it, and those of its caller are not counted. In loops over rows, locking
    the bus took a third of the time of some kernels.
    """
    word = ir.IntType(64)
    made = ir.Function(module, ir.FunctionType(word, [word.as_pointer()]), name=f"nrt_atomic_{operation}")
    builder = ir.IRBuilder(made.append_basic_block())
    (count,) = made.args
    changed = getattr(builder, operation)(builder.load(count), word(1))
    builder.store(changed, count)
    builder.ret(changed)
    return made


def object_of(kernel: Kernel) -> bytes:
    """The object file of a kernel."""
    arguments, declared = sigutils.normalize_signature(kernel.signature)
    kernel.function.compile(arguments)
    found = kernel.function.overloads[arguments]
    returned = found.signature.return_type
    if returned != declared:
        name = f"{kernel.module}.{kernel.name}"
        raise TypeError(f"kernel {name} declares that it returns {declared}, but it returns {returned}")
    module = llvm.parse_bitcode(found.library._final_module.as_bitcode())
    entry = found.fndesc.llvm_func_name
    triple = TRIPLES.get(BUILD_FOR, llvm.get_process_triple())
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu="generic" if BUILD_FOR == "aarch64" else BUILD_FOR, features="", opt=3, reloc="pic", codemodel="default"
    )
    module.triple = triple
    module.data_layout = str(machine.target_data)
    module.link_in(llvm.parse_assembly(_wrapper(kernel, entry)))
    for function in module.functions:
        if not function.is_declaration and function.name != kernel.symbol:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3)))
    data: bytes = machine.emit_object(module)
    return data


def _wrapper(kernel: Kernel, entry: str) -> str:
    """A function in LLVM's language that takes a kernel's arguments from words, and calls Numba's function."""
    types, values, lines = ["ptr", "ptr"], ["%result", "%error"], []
    used = 0

    def word() -> str:
        nonlocal used
        lines.append(f"  %at{used} = getelementptr i64, ptr %words, i64 {used}")
        lines.append(f"  %word{used} = load i64, ptr %at{used}")
        used += 1
        return f"%word{used - 1}"

    def give(type: str, value: str) -> None:
        types.append(type)
        values.append(value)

    for kind in kinds(kernel.signature)[0]:
        if kind == "i":
            give("i64", word())
            continue
        # An array, as Numba passes it: memory and parent (it is the caller's), elements, their size, data, lengths, strides.
        data = word()
        lengths = [word() for _ in range(1 if kind == "v" else 2)]
        lines.append(f"  %data{used} = inttoptr i64 {data} to ptr")
        elements, row = lengths[0], []
        if kind == "m":
            elements = f"%elements{used}"
            lines.append(f"  {elements} = mul i64 {lengths[0]}, {lengths[1]}")
            lines.append(f"  %row{used} = mul i64 8, {lengths[1]}")
            row = [f"%row{used}"]
        for value in ("null", "null"):
            give("ptr", value)
        give("i64", elements)
        give("i64", "8")
        give("ptr", f"%data{used}")
        for value in (*lengths, *row, "8"):
            give("i64", value)
    passed = ", ".join(f"{type} {value}" for type, value in zip(types, values, strict=True))
    return "\n".join(
        [
            f'declare i32 @"{entry}"({", ".join(types)})',
            f"define i32 @{kernel.symbol}(ptr %result, ptr %error, ptr %words) {{",
            *lines,
            f'  %status = call i32 @"{entry}"({passed})',
            "  ret i32 %status",
            "}",
        ]
    )
