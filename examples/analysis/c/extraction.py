"""Facts of a module of LLVM: each function is a unit, and so are the globals.

* Locals that no pointer leads to become values first (LLVM's `sroa`), so that facts are about values, not about stack slots.
* An instruction is named after its function, its opcode and how often the opcode came before. A change of one function
  leaves the names in others alone.
* The address of a field of a struct is named after its base, so that `p->a` is one node however often a function writes it.
  Addresses of elements of arrays are the array's: indexes are not told apart.
* Calls through pointers, and integers that become pointers, give no facts.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from llvmlite import binding

from examples.analysis.c.compiling import CannotCompile
from examples.analysis.fact_base import Row

GLOBAL = re.compile(r'@([-\w.$]+|"[^"]+")')
PLACE = re.compile(r"!dbg !(\d+)")
LOCATION = re.compile(r"^!(\d+) = !DILocation\(line: (\d+)", re.MULTILINE)
FUNCTION = re.compile(r'^define [^@]*@([-\w.$]+|"[^"]+")\(')
# What follows `global` or `constant` is the type and the initial value.
GLOBAL_VARIABLE = re.compile(r'^@([-\w.$]+|"[^"]+") = (?:[^"\n]*?) (?:global|constant) (.*)$', re.MULTILINE)
STRUCT = re.compile(r"getelementptr (?:\w+ )*(%[-\w.$]+|%\"[^\"]+\"|\{[^}]*\}), ptr")
ALLOCATORS = re.compile(r"malloc|calloc|realloc|strdup|alloc$", re.IGNORECASE)
COPIES = re.compile(r"llvm\.mem(cpy|move)|^mem(cpy|move)$")
Kind = binding.ValueKind


def module_units(text: str, name: str) -> dict[str, dict[str, list[Row]]]:
    """The facts of a module, by function."""
    try:
        # A context of its own: in a shared one, LLVM renames a struct that another module has, too.
        module = binding.parse_assembly(text, binding.create_context())
    except RuntimeError as error:
        raise CannotCompile(f"{name}: LLVM {binding.llvm_version_info[0]} cannot read it: {error}") from error
    with module:
        promote(module)
        printed = str(module)
        source = Path(module.source_file).name
        instructions = printed_instructions(printed)
        units = {f"{name}: globals": global_facts(printed)}
        for function in module.functions:
            if not function.is_declaration:
                facts = FunctionFacts(function, source, instructions[function.name]).facts()
                units[f"{name}: {function.name}"] = facts
    return units


def printed_instructions(text: str) -> dict[str, list[tuple[str, str]]]:
    """Each instruction's text and source line, by function and in order. The line is `?` where the compiler says none.

    A module is printed once: to print one instruction LLVM numbers the whole function, and numbers source lines anew.
    """
    known = dict(LOCATION.findall(text))
    found: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.startswith("define "):
            current = found.setdefault(FUNCTION.findall(line)[0].strip('"'), [])
        elif line.startswith("  ") and line[2:3] not in (" ", "]", ""):
            current.append((line, "?"))
        if line.startswith("  ") and current and (place := PLACE.search(line)):  # a switch has it on its last line
            current[-1] = current[-1][0], known.get(place[1], "?")
    return found


def promote(module: Any) -> None:
    """Make values of locals, and give every instruction a name."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine()
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options())
    passes = binding.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_namer_pass()
    passes.run(module, builder)


def global_facts(text: str) -> dict[str, list[Row]]:
    """What initial values say of globals: which addresses they hold, and whether a pointer begins as null."""
    facts: dict[str, list[Row]] = defaultdict(list)
    for name, initial in GLOBAL_VARIABLE.findall(text):
        node = "@" + name.strip('"')
        facts["Object"].append((node, "global"))
        facts["Dereference"].append((node, f"*{node}"))
        facts["AssignLocal"].extend((f"@{found}", f"*{node}") for found in dict.fromkeys(GLOBAL.findall(initial)))
        if initial.startswith("ptr null"):
            facts["NullAssignment"].append((f"{node} begins as null", f"*{node}"))
    return dict(facts)


class FunctionFacts:
    """The facts of one function."""

    def __init__(self, function: Any, source: str, printed: list[tuple[str, str]]) -> None:
        self.function, self.source = function, source
        self.printed = printed
        self.name = function.name
        self.node = f"@{function.name}"
        self.found: dict[str, dict[Row, None]] = defaultdict(dict)
        self.names: dict[str, str] = {}
        self.ordinals: Counter[str] = Counter()
        self.bases: dict[str, str] = {}
        self.ends: dict[str, str] = {}  # the line of each block's last instruction
        self.text, self.line = "", "?"

    def add(self, relation: str, *row: str | int) -> None:
        self.found[relation][row] = None

    def facts(self) -> dict[str, list[Row]]:
        self.add("Object", self.node, "function")
        for index, argument in enumerate(self.function.arguments):
            self.names[argument.name] = f"{self.name}/%{index}"
            if argument.type.is_pointer:
                self.add("FormalArgument", self.node, index, f"{self.name}/%{index}")
        instructions = []
        printed = iter(self.printed)
        for block in self.function.blocks:
            for one in block.instructions:
                self.text, self.line = next(printed)
                # Every call of llvmlite costs microseconds: an instruction without pointers is not looked at.
                if "ptr" in self.text or "alloca" in self.text or "call" in self.text:
                    step = getattr(self, f"step_{one.opcode}", None)
                    if step is None:
                        continue
                    operands = [*one.operands]
                    instructions.append((step, one, operands, self.line))
                    if one.name:
                        self.names[one.name] = self.instruction_name(one, operands)
            self.ends[block.name] = self.line
        for step, one, operands, self.line in instructions:
            step(one, operands)
        return {relation: list(rows) for relation, rows in self.found.items()}

    def numbered(self, kind: str) -> str:
        self.ordinals[kind] += 1
        return f"{self.name}/{kind}{self.ordinals[kind] - 1}"

    def instruction_name(self, one: Any, operands: list[Any]) -> str:
        if one.opcode == "call" and operands[-1].value_kind == Kind.function:
            return self.numbered(f"{operands[-1].name} call ")
        if one.opcode == "getelementptr":
            base = self.node_of(operands[0])
            if base is not None and all(index.value_kind == Kind.constant_int for index in operands[1:]):
                return self.part(base, [index.get_constant_value(True) for index in operands[1:]])
        if one.opcode == "bitcast":  # clang before 15 has types of pointers; another type is the same pointer
            return self.node_of(operands[0]) or self.numbered(one.opcode)
        return self.numbered(one.opcode)

    def part(self, base: str, indexes: list[int]) -> str:
        """The name of an address at constant indexes: the struct's field, or the base itself if the address may be the same."""
        struct = STRUCT.search(self.text)
        if struct is None or indexes[0] != 0 or not any(indexes[1:]):
            return base
        field = ".".join([struct[1].strip('%"').removeprefix("struct."), *map(str, indexes[1:])])
        address = f"{base}.{field}"
        self.add("FieldAddress", base, address, field)
        self.bases[address] = base
        return address

    def node_of(self, value: Any) -> str | None:
        """The node of an operand; None for null, undefined values and numbers."""
        kind = value.value_kind
        if kind in (Kind.instruction, Kind.argument):
            return self.names.get(value.name)
        if kind in (Kind.global_variable, Kind.function, Kind.global_alias):
            return f"@{value.name}"
        if kind == Kind.constant_expr:
            found = GLOBAL.search(str(value).partition("(")[2])
            return f"@{found[1]}" if found else None
        return None

    def memory(self, pointer: str) -> str:
        self.add("Dereference", pointer, f"*{pointer}")
        return f"*{pointer}"

    def place(self) -> str:
        return f"{self.source}:{self.line}"

    def assign(self, value: Any, to: str) -> None:
        """A value goes to a node: an assignment, or an assignment of null."""
        if value.value_kind == Kind.constant_pointer_null:
            self.add("NullAssignment", f"{self.place()} in {self.name}: {to} = null", to)
            return
        node = self.node_of(value)
        if node is not None and node != to:
            self.add("AssignLocal", node, to)

    def use(self, pointer: Any) -> str | None:
        node = self.node_of(pointer)
        if node is not None:
            self.add("Use", self.place(), self.used(node), self.name)
        return node

    def used(self, node: str) -> str:
        """The pointer that must not be null so that a node is an address: of `p->a`, `p`."""
        while node in self.bases:
            node = self.bases[node]
        return node

    # Instructions by opcode. The others move no pointers.

    def step_alloca(self, one: Any, operands: list[Any]) -> None:
        self.add("Object", self.names[one.name], "local")

    def step_load(self, one: Any, operands: list[Any]) -> None:
        pointer = self.use(operands[0])
        if pointer is not None and one.type.is_pointer:
            self.add("AssignLocal", self.memory(pointer), self.names[one.name])

    def step_store(self, one: Any, operands: list[Any]) -> None:
        pointer = self.use(operands[1])
        if pointer is not None and operands[0].type.is_pointer:
            self.assign(operands[0], self.memory(pointer))

    def step_getelementptr(self, one: Any, operands: list[Any]) -> None:
        name = self.names[one.name]
        if name.startswith(f"{self.name}/getelementptr"):
            self.assign(operands[0], name)

    def step_bitcast(self, one: Any, operands: list[Any]) -> None:
        if one.type.is_pointer:
            self.assign(operands[0], self.names[one.name])

    def step_phi(self, one: Any, operands: list[Any]) -> None:
        if one.type.is_pointer:
            for value, block in zip(operands, one.incoming_blocks, strict=True):
                # A phi has no line; the jump that leads to it has one.
                self.line = self.ends[block.name]
                self.assign(value, self.names[one.name])

    def step_select(self, one: Any, operands: list[Any]) -> None:
        if one.type.is_pointer:
            for value in operands[1:]:
                self.assign(value, self.names[one.name])

    def step_icmp(self, one: Any, operands: list[Any]) -> None:
        if any(value.value_kind == Kind.constant_pointer_null for value in operands):
            for value in operands:
                node = self.node_of(value)
                if node is not None:
                    self.add("NullTest", node)

    def step_ret(self, one: Any, operands: list[Any]) -> None:
        if operands and operands[0].type.is_pointer:
            result = f"{self.name}/result"
            self.add("ReturnedNode", self.node, result)
            self.assign(operands[0], result)

    def step_call(self, one: Any, operands: list[Any]) -> None:
        callee, arguments = operands[-1], operands[:-1]
        if callee.value_kind != Kind.function:
            self.use(callee)
            return
        if COPIES.search(callee.name):
            target, source = self.use(arguments[0]), self.use(arguments[1])
            if target is not None and source is not None:
                self.add("AssignLocal", self.memory(source), self.memory(target))
            return
        if callee.name.startswith("llvm."):
            return
        call = self.names.get(one.name) or self.numbered(f"{callee.name} call ")
        self.add("CallSite", call, self.name, f"@{callee.name}")
        for index, value in enumerate(arguments):
            if value.type.is_pointer:
                node = f"{call} argument {index}"
                self.assign(value, node)
                self.add("ActualArgument", call, index, node)
        if one.type.is_pointer:
            self.add("CallResult", call, call)
            if ALLOCATORS.search(callee.name):
                self.add("Object", call, "heap")


__all__ = ["module_units"]
