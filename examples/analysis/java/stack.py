"""The operand stack run symbolically: the facts of one method's body.

Each instruction is interpreted once, over states whose stack and locals hold variables instead of values. Plain values
(numbers) are holes. What the facts promise: every flow of a reference from one instruction to another, within the body, is a
chain of assignments of `AssignLocal`, or the same variable.

* A store into a local makes a variable. Where branches meet, the variables that a local may hold become one, so each local
  is split into its webs of definitions and uses.
* Where branches meet with references on the stack, each such place of the stack gets a variable, assigned on every way in.
* An instruction's names contain how often its kind came before in the method, not its offset, so that a change of the body
  leaves the names of what did not change alone.

Bodies with `jsr` (compilers before Java 6) are skipped, and say so in `SkippedBody`.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from dataclasses import dataclass

from examples.analysis.java import bytecode as op
from examples.analysis.java.classfile import (
    ClassFile,
    Code,
    Constant,
    Dynamic,
    Handler,
    Member,
    Reference,
    is_reference,
    java_name,
    signature,
    type_name,
    width,
)

STATIC, NATIVE, ABSTRACT = 0x0008, 0x0100, 0x0400
HOLE = -1
Row = tuple[str | int, ...]
Facts = dict[str, list[Row]]

# Type names of `newarray`'s operand (JVMS table 6.5.newarray-A).
ARRAYS = dict(enumerate(("boolean", "char", "float", "double", "byte", "short", "int", "long"), 4))
LAMBDAS = "java.lang.invoke.LambdaMetafactory"
# How a method handle calls (JVMS table 5.4.3.5-A).
CALLS = {5: "virtual", 6: "static", 7: "special", 8: "construct", 9: "virtual"}


def method_name(owner: str, name: str, descriptor: str) -> str:
    """The name of a method in facts.

    >>> method_name("a.B", "put", "(Ljava/lang/String;I)V")
    'a.B.put(java.lang.String,int)void'
    """
    parameters, result = signature(descriptor)
    return f"{owner}.{name}({','.join(map(type_name, parameters))}){type_name(result)}"


@dataclass
class State:
    """What is known before an instruction: a variable or a hole for each local and for each slot of the stack."""

    locals: list[int]
    stack: list[int]


class Body:
    """Interprets one body. `facts()` gives what it says."""

    def __init__(self, owner: ClassFile, member: Member) -> None:
        self.owner, self.member = owner, member
        self.method = method_name(owner.name, member.name, member.descriptor)
        self.found: dict[str, list[tuple[str | int | Variable, ...]]] = defaultdict(list)
        self.names: list[str] = []  # a name for each variable
        self.parents: list[int] = []  # a forest: variables that are one have the same root
        self.slots: dict[int, int] = {}  # variables of locals: their slot
        self.ordinals: Counter[str] = Counter()
        self.states: dict[int, State] = {}
        self.phis: dict[int, dict[int, int]] = {}
        self.waiting: list[int] = []
        self.handlers: dict[tuple[int, str], tuple[str, int]] = {}

    # Names and variables

    def numbered(self, kind: str) -> str:
        """A name for an instruction of the method: its kind, and how many of that kind came before."""
        self.ordinals[kind] += 1
        return f"{self.method}/{kind}/{self.ordinals[kind] - 1}"

    def variable(self, name: str, slot: int | None = None) -> int:
        self.names.append(name)
        self.parents.append(len(self.parents))
        if slot is not None:
            self.slots[len(self.parents) - 1] = slot
        return len(self.parents) - 1

    def root(self, variable: int) -> int:
        while self.parents[variable] != variable:
            variable = self.parents[variable]
        return variable

    def unite(self, first: int, second: int) -> None:
        one, other = sorted((self.root(first), self.root(second)))
        self.parents[other] = one

    def add(self, relation: str, *values: str | int | Variable) -> None:
        self.found[relation].append(values)

    # The run

    def facts(self) -> Facts:
        code = self.member.code
        assert code is not None
        instructions = {one.at: one for one in op.decode(code.instructions)}
        self.enter(code)
        if any(one.opcode in (op.JSR, op.JSR_W, op.RET) for one in instructions.values()):
            self.add("SkippedBody", self.method)
            return self.named()
        arrivals = Counter(target for one in instructions.values() for target in one.successors)
        self.joins = {target for target, count in arrivals.items() if count > 1}
        covering: dict[int, list[Handler]] = defaultdict(list)
        for handler in code.handlers:
            for at in range(handler.start, handler.end):
                if at in instructions:
                    covering[at].append(handler)
        while self.waiting:
            at = heapq.heappop(self.waiting)
            before = self.states[at]
            state = State(before.locals.copy(), before.stack.copy())
            for handler in covering[at]:
                self.arrive_at_handler(handler, state.locals)
            instruction = instructions[at]
            self.covering = covering[at]
            self.step(instruction, state)
            for target in instruction.successors:
                self.arrive(target, state)
        return self.named()

    def enter(self, code: Code) -> None:
        """The state at the beginning: `this` and the parameters."""
        parameters, _ = signature(self.member.descriptor)
        state = State([HOLE] * code.max_locals, [])
        slot = 0
        if not self.member.flags & STATIC:
            state.locals[0] = self.variable(f"{self.method}/@this")
            self.add("ThisVar", self.method, Variable(state.locals[0]))
            slot = 1
        for index, parameter in enumerate(parameters):
            if is_reference(parameter):
                state.locals[slot] = self.variable(f"{self.method}/@parameter{index}")
                self.add("FormalParam", index, self.method, Variable(state.locals[slot]))
            slot += width(parameter)
        self.states[0] = state
        self.waiting = [0]

    def arrive(self, at: int, state: State) -> None:
        """Control goes to an instruction with a state."""
        if at in self.joins and any(value != HOLE for value in state.stack):
            phis = self.phis.setdefault(at, {})
            stack = []
            for place, value in enumerate(state.stack):
                if value == HOLE:
                    stack.append(HOLE)
                    continue
                if place not in phis:
                    phis[place] = self.variable(self.numbered("join"))
                self.add("AssignLocal", Variable(value), Variable(phis[place]), self.method)
                stack.append(phis[place])
            state = State(state.locals, stack)
        if at in self.states:
            self.merge(self.states[at].locals, state.locals)
        else:
            self.states[at] = State(state.locals.copy(), state.stack.copy())
            heapq.heappush(self.waiting, at)

    def merge(self, known: list[int], arriving: list[int]) -> None:
        """Unite what two ways leave in the same local. A local that is a hole on one way is never read after they meet."""
        for one, other in zip(known, arriving, strict=True):
            if one != other and HOLE not in (one, other):
                self.unite(one, other)

    def arrive_at_handler(self, handler: Handler, locals_: list[int]) -> None:
        _, variable = self.handler(handler)
        if handler.target in self.states:
            self.merge(self.states[handler.target].locals, locals_)
        else:
            self.states[handler.target] = State(locals_.copy(), [variable])
            heapq.heappush(self.waiting, handler.target)
        known = self.states[handler.target].stack[0]
        if known != variable:  # handlers of several types share their code
            self.unite(known, variable)

    def handler(self, handler: Handler) -> tuple[str, int]:
        """The name of a handler, and the variable that it catches into."""
        caught = handler.type or "java.lang.Throwable"
        key = handler.target, caught
        if key not in self.handlers:
            name = self.numbered(f"catch {caught}")
            variable = self.variable(f"{name}#caught")
            self.handlers[key] = name, variable
            self.add("ExceptionHandler", name, caught, Variable(variable), self.method)
        return self.handlers[key]

    def covered(self, instruction: str) -> None:
        """Says which handlers are tried, in order, when the instruction throws."""
        for order, name in enumerate(dict.fromkeys(self.handler(one)[0] for one in self.covering)):
            self.add("HandlerOf", instruction, order, name)

    # Instructions

    def step(self, one: op.Instruction, state: State) -> None:
        stack, opcode = state.stack, one.opcode
        if opcode in op.EFFECTS:
            if opcode in (op.IFNULL, op.IFNONNULL) and stack[-1] != HOLE:
                self.add("NullCheck", self.numbered("null check"), Variable(stack[-1]), self.method)
            elif opcode in (op.ARRAYLENGTH, op.MONITORENTER):
                self.dereference(self.numbered("length" if opcode == op.ARRAYLENGTH else "synchronized"), stack[-1])
            pops, pushes = op.EFFECTS[opcode]
            take(stack, pops)
            stack.extend([HOLE] * pushes)
        elif opcode in op.PLAIN_LOADS:
            stack.extend([HOLE] * op.PLAIN_LOADS[opcode][0])
        elif opcode in op.PLAIN_STORES:
            slots, slot = op.PLAIN_STORES[opcode]
            take(stack, slots)
            first = one.operand if slot is None else slot
            state.locals[first : first + slots] = [HOLE] * slots
        elif opcode == op.ALOAD or op.ALOAD_0 <= opcode < op.ALOAD_0 + 4:
            stack.append(state.locals[one.operand if opcode == op.ALOAD else opcode - op.ALOAD_0])
        elif opcode == op.ASTORE or op.ASTORE_0 <= opcode < op.ASTORE_0 + 4:
            self.store(one.operand if opcode == op.ASTORE else opcode - op.ASTORE_0, state)
        elif op.POP <= opcode <= op.SWAP:
            shuffle(stack, opcode)
        elif opcode in (op.NULL, op.LDC, op.LDC_W, op.LDC2):
            self.constant(one, stack)
        elif op.GETSTATIC <= opcode <= op.PUTFIELD:
            self.field(opcode, self.owner.pool[one.operand], stack)
        elif op.INVOKEVIRTUAL <= opcode <= op.INVOKEINTERFACE:
            self.invoke(opcode, self.owner.pool[one.operand], stack)
        elif opcode == op.INVOKEDYNAMIC:
            self.invoke_dynamic(self.owner.pool[one.operand], stack)
        else:
            self.step_object(one, stack)

    def step_object(self, one: op.Instruction, stack: list[int]) -> None:
        """Allocations, casts, elements of arrays, `return` and `throw`."""
        match one.opcode:
            case op.AALOAD:
                base = take(stack, 2)[0]
                name = self.numbered("array load")
                self.dereference(name, base)
                stack.append(self.result(name))
                self.add("LoadArrayIndex", Variable(base), Variable(stack[-1]), self.method)
            case op.AASTORE:
                base, _, value = take(stack, 3)
                self.dereference(self.numbered("array store"), base)
                self.add("StoreArrayIndex", Variable(value), Variable(base), self.method)
            case op.NEW:
                stack.append(self.allocate(self.owner.pool[one.operand].value))
                self.add("StaticAccess", self.owner.pool[one.operand].value, self.method)
            case op.NEWARRAY:
                take(stack, 1)
                stack.append(self.allocate(ARRAYS[one.operand] + "[]"))
            case op.ANEWARRAY:
                take(stack, 1)
                stack.append(self.allocate(self.owner.pool[one.operand].value + "[]"))
            case op.MULTIANEWARRAY:
                self.allocate_nested(self.owner.pool[one.operand].value, one.dimensions, stack)
            case op.CHECKCAST:
                value = take(stack, 1)[0]
                wanted = self.owner.pool[one.operand].value
                name = self.numbered(f"cast {wanted}")
                stack.append(self.result(name))
                self.add("AssignCast", wanted, Variable(value), Variable(stack[-1]), name, self.method)
            case op.ARETURN:
                self.add("ReturnVar", self.method, Variable(take(stack, 1)[0]))
            case op.ATHROW:
                name = self.numbered("throw")
                self.add("Throw", name, Variable(take(stack, 1)[0]), self.method)
                self.covered(name)
            case _:
                raise ValueError(f"method {self.method}: unknown opcode {one.opcode} at byte {one.at}")

    def result(self, name: str) -> int:
        return self.variable(f"{name}#value")

    def store(self, slot: int, state: State) -> None:
        value = state.stack.pop()
        target = self.variable("", slot)
        if value != HOLE:
            self.add("AssignLocal", Variable(value), Variable(target), self.method)
        state.locals[slot] = target

    def constant(self, one: op.Instruction, stack: list[int]) -> None:
        if one.opcode == op.NULL:
            stack.append(self.variable(f"{self.numbered('null')}#value"))
            self.add("AssignNull", Variable(stack[-1]), self.method)
            return
        if one.opcode == op.LDC2:
            stack.extend([HOLE, HOLE])
            return
        constant = self.owner.pool[one.operand]
        kind = constant.kind if isinstance(constant, Constant) else "dynamic"
        if kind == "number":
            stack.append(HOLE)
        elif kind == "string":
            stack.append(self.allocate("java.lang.String", "string"))
        else:
            stack.append(self.allocate("java.lang.Class" if kind == "class" else "java.lang.Object", kind))

    def allocate(self, type_: str, kind: str = "new") -> int:
        """A new object in a new variable."""
        heap = self.numbered(f"{kind} {type_}")
        variable = self.result(heap)
        self.add("AssignHeapAllocation", heap, type_, Variable(variable), self.method)
        return variable

    def allocate_nested(self, type_: str, dimensions: int, stack: list[int]) -> None:
        """An array of arrays: one object for each dimension, each stored in the one around it."""
        take(stack, dimensions)
        stack.append(self.allocate(type_))
        outer = stack[-1]
        for _ in range(dimensions - 1):
            type_ = type_[:-2]
            inner = self.allocate(type_)
            self.add("StoreArrayIndex", Variable(inner), Variable(outer), self.method)
            outer = inner

    def dereference(self, name: str, base: int) -> None:
        self.add("Dereference", name, Variable(base), self.method)

    def field(self, opcode: int, field: Reference, stack: list[int]) -> None:
        reference = is_reference(field.descriptor)
        kind = "load" if opcode in (op.GETSTATIC, op.GETFIELD) else "store"
        name = self.numbered(f"{kind} {field.owner}.{field.name}")
        value = HOLE
        if opcode in (op.PUTSTATIC, op.PUTFIELD):
            value = take(stack, width(field.descriptor))[0]
        if opcode in (op.GETFIELD, op.PUTFIELD):
            base = stack.pop()
            self.dereference(name, base)
        else:
            self.add("StaticAccess", field.owner, self.method)
        if opcode in (op.GETSTATIC, op.GETFIELD):
            if not reference:
                stack.extend([HOLE] * width(field.descriptor))
                return
            value = self.result(name)
            stack.append(value)
        if value == HOLE:
            return
        match opcode:
            case op.GETSTATIC:
                type_ = type_name(field.descriptor)
                self.add("LoadStaticField", field.owner, field.name, type_, Variable(value), self.method)
            case op.PUTSTATIC:
                self.add("StoreStaticField", Variable(value), field.owner, field.name, self.method)
            case op.GETFIELD:
                self.add("LoadInstanceField", Variable(base), field.owner, field.name, Variable(value), self.method)
            case op.PUTFIELD:
                self.add("StoreInstanceField", Variable(value), Variable(base), field.owner, field.name, self.method)

    def invoke(self, opcode: int, callee: Reference, stack: list[int]) -> None:
        name = self.numbered(f"{callee.owner}.{callee.name}")
        parameters, result = signature(callee.descriptor)
        for index in reversed(range(len(parameters))):
            value = take(stack, width(parameters[index]))[0]
            if value != HOLE:
                self.add("ActualParam", index, name, Variable(value))
        called = callee.owner, callee.name, callee.descriptor
        if opcode == op.INVOKESTATIC:
            self.add("StaticMethodInvocation", name, *called, self.method)
            self.add("StaticAccess", callee.owner, self.method)
        else:
            base = stack.pop()
            if callee.name != "<init>":
                self.dereference(name, base)
            kind = "SpecialMethodInvocation" if opcode == op.INVOKESPECIAL else "VirtualMethodInvocation"
            self.add(kind, name, *called, Variable(base), self.method)
        self.covered(name)
        self.push_result(name, result, stack)

    def push_result(self, name: str, result: str, stack: list[int]) -> None:
        if is_reference(result):
            stack.append(self.variable(f"{name}#result"))
            self.add("AssignReturnValue", name, type_name(result), Variable(stack[-1]))
        else:
            stack.extend([HOLE] * width(result))

    def invoke_dynamic(self, site: Dynamic, stack: list[int]) -> None:
        """A lambda or a method reference is an object that captures; anything else makes an object of its result's type."""
        parameters, result = signature(site.descriptor)
        captured = [take(stack, width(one))[0] for one in reversed(parameters)][::-1]
        if not is_reference(result):
            stack.extend([HOLE] * width(result))
            return
        interface = type_name(result)
        bootstrap = self.owner.bootstraps[site.bootstrap]
        if bootstrap.handle.target.owner != LAMBDAS:
            stack.append(self.allocate(interface, "dynamic"))
            return
        heap = self.numbered(f"lambda {interface}")
        stack.append(self.result(heap))
        self.add("AssignHeapAllocation", heap, interface, Variable(stack[-1]), self.method)
        handle = bootstrap.arguments[1].value
        kind, target = CALLS[handle.kind], handle.target
        self.add("LambdaAllocation", heap, site.name, kind, target.owner, target.name, target.descriptor)
        # Parameters of the target are counted from 0, its `this` is -1.
        first = -1 if kind in ("virtual", "special") else 0
        for index, value in enumerate(captured):
            if value != HOLE:
                self.add("LambdaCapture", heap, first + index, Variable(value))
        self.add("LambdaShift", heap, first + len(captured))
        if kind == "construct":
            self.add("LambdaConstruction", heap, self.numbered(f"new {target.owner}"), target.owner)
            self.add("StaticAccess", target.owner, self.method)

    # The end

    def named(self) -> Facts:
        """The facts, with a name for each variable; facts that hold a hole (dead code of old compilers) are left out."""
        counts: Counter[int] = Counter()
        names: dict[int, str] = {}
        for variable in range(len(self.parents)):
            root = self.root(variable)
            if root not in names:
                name = self.names[root]
                if not name:
                    slot = self.slots[root]
                    name = f"{self.method}/local{slot}#{counts[slot]}"
                    counts[slot] += 1
                names[root] = name

        def row(values: tuple[str | int | Variable, ...]) -> Row:
            return tuple(names[self.root(one.number)] if isinstance(one, Variable) else one for one in values)

        def whole(values: tuple[str | int | Variable, ...]) -> bool:
            return not any(isinstance(one, Variable) and one.number == HOLE for one in values)

        return {
            relation: list(dict.fromkeys(row(values) for values in rows if whole(values)))
            for relation, rows in self.found.items()
        }


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in a fact that has no name yet."""

    number: int


def take(stack: list[int], count: int) -> list[int]:
    """The upper slots of a stack, taken off it."""
    if count == 0:
        return [HOLE]
    taken = stack[-count:]
    del stack[-count:]
    return taken


# What `dup` and its relatives leave of the upper slots (JVMS 6.5), as places counted from the deepest.
SHUFFLES = {
    op.POP: (1, ()),
    op.POP2: (2, ()),
    op.DUP: (1, (0, 0)),
    op.DUP_X1: (2, (1, 0, 1)),
    op.DUP_X2: (3, (2, 0, 1, 2)),
    op.DUP2: (2, (0, 1, 0, 1)),
    op.DUP2_X1: (3, (1, 2, 0, 1, 2)),
    op.DUP2_X2: (4, (2, 3, 0, 1, 2, 3)),
    op.SWAP: (2, (1, 0)),
}


def shuffle(stack: list[int], opcode: int) -> None:
    count, places = SHUFFLES[opcode]
    upper = take(stack, count)
    stack.extend(upper[place] for place in places)


def body_facts(owner: ClassFile, member: Member) -> Facts:
    """The facts of a method's body."""
    return Body(owner, member).facts()


__all__ = ["Facts", "Row", "body_facts", "java_name", "method_name"]
