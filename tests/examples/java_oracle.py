"""The slow twin of the context-insensitive points-to analysis: the same meaning, by passes over all facts until nothing
changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Rows = Mapping[str, Iterable[tuple[Any, ...]]]
OBJECT, THROWABLE = "java.lang.Object", "java.lang.Throwable"


class Program:
    """What declarations say: subtypes, lookup of fields and methods, unknown objects, handlers, entries."""

    def __init__(self, facts: Rows, known: Iterable[tuple[str, str]]) -> None:
        self.facts = {name: list(rows) for name, rows in facts.items()}
        self.known = list(known)
        self.classes = {c for (c,) in self["ClassType"]}
        self.interfaces = {c for (c,) in self["InterfaceType"]}
        self.arrays = dict(self["ArrayType"])
        self.superclass = {c: s for c, s in self.known if c not in self.classes} | dict(self["DirectSuperclass"])
        self.above: dict[str, set[str]] = defaultdict(set)
        for c, s in [*self.superclass.items(), *self["DirectSuperinterface"]]:
            self.above[c].add(s)
        self.methods = {(c, n, d): m for m, c, n, d in self["Method"]}
        self.owner = {m: c for m, c, _, _ in self["Method"]}
        self.concrete = {m for (m,) in self["ConcreteMethod"]}
        self.static = {m for (m,) in self["StaticMethod"]}
        self.fields = {(c, n): f for f, c, n, _ in self["Field"]}
        self.instantiable = self.classes - {c for (c,) in self["AbstractType"]}
        self.types = self.all_types()
        self.supertypes = {t: self.find_supertypes(t) for t in self.types}
        self.heap_types = self.find_heap_types()

    def __getitem__(self, relation: str) -> list[tuple[Any, ...]]:
        return self.facts.get(relation, [])

    def all_types(self) -> set[str]:
        found = self.classes | self.interfaces | {*self.arrays, *self.arrays.values()} | {*self.above}
        found |= {s for above in self.above.values() for s in above}
        for relation, column in [
            ("AssignHeapAllocation", 1), ("AssignCast", 0), ("AssignReturnValue", 1), ("FormalType", 2),
            ("ReturnType", 1), ("LoadStaticField", 2), ("ExceptionHandler", 1),
            ("DeclaredException", 1), ("LambdaConstruction", 2),
        ]:  # fmt: skip
            found |= {row[column] for row in self[relation]}
        return found

    def find_supertypes(self, start: str) -> set[str]:
        found, waiting = {OBJECT}, [start]
        while waiting:
            one = waiting.pop()
            if one in found and one != OBJECT:
                continue
            found.add(one)
            waiting.extend(self.above.get(one, ()))
            if one in self.arrays:
                found |= {"java.lang.Cloneable", "java.io.Serializable"}
                above = self.find_supertypes(self.arrays[one])
                waiting.extend(
                    other for other, component in self.arrays.items() if component in above and other not in found
                )
        return found

    def is_unknown(self, type_: str) -> bool:
        return type_ not in self.classes and type_ not in self.interfaces and type_ not in self.arrays

    def is_open(self, type_: str) -> bool:
        return any(self.is_unknown(s) and s != OBJECT for s in self.supertypes[type_])

    def castable(self, type_: str, wanted: str) -> bool:
        return (
            wanted in self.supertypes[type_]
            or (self.is_open(type_) and self.is_unknown(wanted) and wanted in self.types)
            or type_ == OBJECT
        )

    def unknown(self, type_: str) -> set[str]:
        """The unknown objects of a declared type."""
        found = set()
        if self.is_unknown(type_) or type_ in self.arrays:
            found.add(f"unknown {type_}")
        if type_ != OBJECT:
            found |= {f"unknown {c}" for c in self.instantiable if type_ in self.supertypes[c]}
        return found

    def find_heap_types(self) -> dict[str, str]:
        found = {h: t for h, t, _, _ in self["AssignHeapAllocation"]} | {h: t for _, h, t in self["LambdaConstruction"]}
        for type_ in self.types:
            found |= {heap: heap.removeprefix("unknown ") for heap in self.unknown(type_)}
        return found

    def field(self, class_: str, name: str) -> set[str]:
        """The fields that a reference means: the first ones above the class, or one that stands for the reference."""
        found, waiting, seen = set(), [class_], set()
        while waiting:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            if (one, name) in self.fields:
                found.add(self.fields[one, name])
            else:
                waiting.extend(self.above.get(one, ()))
        return found or {f"{class_}.{name}"}

    def in_classes(self, class_: str | None, name: str, descriptor: str) -> str | None:
        while class_ is not None:
            method = self.methods.get((class_, name, descriptor))
            if method in self.concrete:
                return method
            class_ = self.superclass.get(class_)
        return None

    def defaults(self, class_: str, name: str, descriptor: str) -> dict[str, str]:
        """Default methods by the interface above the class that has them."""
        found = {i: self.methods.get((i, name, descriptor)) for i in self.supertypes[class_] if i in self.interfaces}
        return {i: m for i, m in found.items() if m in self.concrete and m not in self.static and m is not None}

    def lookup(self, type_: str, name: str, descriptor: str) -> set[str]:
        """The methods that a virtual call runs on an object of a type."""
        if type_ not in self.instantiable:
            return set()
        method = self.in_classes(type_, name, descriptor)
        if method is not None:
            return set() if method in self.static else {method}
        found = self.defaults(type_, name, descriptor)
        return {m for i, m in found.items() if not any(i in self.supertypes[j] and i != j for j in found)}

    def fixed(self, class_: str, name: str, descriptor: str) -> set[str]:
        """The methods that a special or static call runs."""
        method = self.in_classes(class_, name, descriptor)
        if method is not None:
            return {method}
        return {*self.defaults(class_, name, descriptor).values()} if class_ in self.types else set()


def points_to(facts: Rows, known: Iterable[tuple[str, str]]) -> dict[str, set[tuple[str, ...]]]:
    """VarPointsTo as (heap, variable), CallGraphEdge as (invocation, method), and Reachable."""
    program = Program(facts, known)
    state = State(program)
    size = -1
    while size != state.size():
        size = state.size()
        for pass_ in (state.enter, state.within_bodies, state.calls, state.lambdas, state.exceptions, state.outside):
            pass_()
    return {
        "VarPointsTo": {(h, v) for v, heaps in state.var.items() for h in heaps},
        "CallGraphEdge": state.edges,
        "Reachable": {(m,) for m in state.reachable},
    }


class State:
    """What is known so far. Each pass adds to it."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.var: dict[str, set[str]] = defaultdict(set)
        self.field: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.array: dict[str, set[str]] = defaultdict(set)
        self.static: dict[str, set[str]] = defaultdict(set)
        self.thrown: dict[str, set[str]] = defaultdict(set)
        self.edges: set[tuple[str, str]] = set()
        self.lambda_edges: set[tuple[str, str, str]] = set()
        self.reachable: set[str] = set()
        self.formals = {(m, n): v for n, m, v in program["FormalParam"]}
        self.this = dict(program["ThisVar"])
        self.returns: dict[str, set[str]] = defaultdict(set)
        for m, v in program["ReturnVar"]:
            self.returns[m].add(v)
        self.results = {i: (t, v) for i, t, v in program["AssignReturnValue"]}
        self.actuals: dict[str, dict[int, str]] = defaultdict(dict)
        for n, i, v in program["ActualParam"]:
            self.actuals[i][n] = v
        self.handlers: dict[str, dict[int, str]] = defaultdict(dict)
        for i, order, h in program["HandlerOf"]:
            self.handlers[i][order] = h
        self.caught = {h: (t, v) for h, t, v, _ in program["ExceptionHandler"]}
        self.lambdas_of = {row[0]: row for row in program["LambdaAllocation"]}
        self.shifts = dict(program["LambdaShift"])
        self.constructed = {made: h for made, h, _ in program["LambdaConstruction"]}
        self.natives = {m for (m,) in program["NativeMethod"]}
        self.allocated_in = {h: m for h, _, _, m in program["AssignHeapAllocation"]}

    def size(self) -> int:
        tables = (self.var, self.field, self.array, self.static, self.thrown)
        rows = sum(len(heaps) for table in tables for heaps in table.values())  # type: ignore[attr-defined]
        return rows + len(self.edges) + len(self.lambda_edges) + len(self.reachable)

    def enter(self) -> None:
        program = self.program
        named = {m for (m,) in program["EntryPoint"]}
        public = {m for (m,) in program["PublicMethod"]}
        types = {c for (c,) in program["PublicType"]}
        for _, c, n, d in program["Method"]:
            m = program.methods[c, n, d]
            if m in named or (not named and c in types and m in public and m in program.concrete):
                self.reachable.add(m)
                if m in self.this:
                    self.var[self.this[m]] |= program.unknown(c)
                self.unknown_arguments(m)
        used = {c for c, m in program["StaticAccess"] if m in self.reachable} | {
            program.owner[m] for m in self.reachable
        }
        accessed = {c for c, m in program["StaticAccess"] if m in self.reachable}
        for c in accessed:
            while c in program.superclass:
                c = program.superclass[c]
                used.add(c)
        self.reachable |= {m for m, c, n, _ in program["Method"] if n == "<clinit>" and c in used}

    def unknown_arguments(self, method: str) -> None:
        for n, m, t in self.program["FormalType"]:
            if m == method and (m, n) in self.formals:
                self.var[self.formals[m, n]] |= self.program.unknown(t)

    def within_bodies(self) -> None:
        program, var, types = self.program, self.var, self.program.heap_types
        for h, _, to, m in program["AssignHeapAllocation"]:
            if m in self.reachable:
                var[to].add(h)
        for source, to, _ in program["AssignLocal"]:
            var[to] |= var[source]
        for t, source, to, _, _ in program["AssignCast"]:
            var[to] |= {h for h in var[source] if program.castable(types[h], t)}
        for source, base, c, n, _ in program["StoreInstanceField"]:
            for f in program.field(c, n):
                for b in var[base]:
                    self.field[b, f] |= var[source]
        for base, c, n, to, _ in program["LoadInstanceField"]:
            for f in program.field(c, n):
                for b in var[base]:
                    var[to] |= self.field[b, f]
        for source, base, _ in program["StoreArrayIndex"]:
            for b in var[base]:
                if types[b] in program.arrays:
                    component = program.arrays[types[b]]
                    self.array[b] |= {h for h in var[source] if program.castable(types[h], component)}
        for array, component in program.arrays.items():
            self.array[f"unknown {array}"] |= program.unknown(component)
        for base, to, _ in program["LoadArrayIndex"]:
            for b in var[base]:
                var[to] |= self.array[b]
        for source, c, n, m in program["StoreStaticField"]:
            for f in program.field(c, n) if m in self.reachable else ():
                self.static[f] |= var[source]
        for c, n, t, to, m in program["LoadStaticField"]:
            for f in program.field(c, n):
                if f not in program.fields.values():
                    self.static[f] |= program.unknown(t)
                if m in self.reachable:
                    var[to] |= self.static[f]

    def call(self, invocation: str, method: str) -> None:
        self.edges.add((invocation, method))
        self.reachable.add(method)
        for n, v in self.actuals[invocation].items():
            if (method, n) in self.formals:
                self.var[self.formals[method, n]] |= self.var[v]
        if invocation in self.results:
            for v in self.returns[method]:
                self.var[self.results[invocation][1]] |= self.var[v]

    def receive(self, invocation: str, heap: str, method: str) -> None:
        if method in self.this:
            self.var[self.this[method]].add(heap)
        self.call(invocation, method)

    def calls(self) -> None:
        program = self.program
        for i, _, n, d, base, _ in program["VirtualMethodInvocation"]:
            for h in list(self.var[base]):
                for m in program.lookup(program.heap_types[h], n, d):
                    self.receive(i, h, m)
        for i, c, n, d, base, _ in program["SpecialMethodInvocation"]:
            for m in program.fixed(c, n, d):
                for h in list(self.var[base]):
                    self.receive(i, h, m)
        for i, c, n, d, caller in program["StaticMethodInvocation"]:
            for m in program.fixed(c, n, d) if caller in self.reachable else ():
                self.call(i, m)

    def lambda_target(self, heap: str) -> str | None:
        _, _, kind, c, n, d = self.lambdas_of[heap]
        return None if kind == "virtual" else self.program.in_classes(c, n, d)

    def captured(self, heap: str) -> Iterator[tuple[int, set[str]]]:
        for made, n, v in self.program["LambdaCapture"]:
            if made == heap and self.allocated_in[made] in self.reachable:
                yield n, self.var[v]

    def pass_captured(self, heap: str, method: str) -> None:
        for n, heaps in self.captured(heap):
            to = self.this.get(method) if n == -1 else self.formals.get((method, n))
            if to is not None:
                self.var[to] |= heaps

    def lambdas(self) -> None:
        for i, _, n, _, base, _ in self.program["VirtualMethodInvocation"]:
            for heap in [one for one in self.var[base] if one in self.lambdas_of and self.lambdas_of[one][1] == n]:
                self.call_lambda(i, heap)

    def call_lambda(self, invocation: str, heap: str) -> None:
        program, shift = self.program, self.shifts[heap]
        if heap in self.constructed and invocation in self.results:
            self.var[self.results[invocation][1]].add(self.constructed[heap])
        if self.lambdas_of[heap][2] == "virtual":
            receivers = {h for n, heaps in self.captured(heap) if n == -1 for h in heaps}
            if shift == -1 and 0 in self.actuals[invocation]:
                receivers |= self.var[self.actuals[invocation][0]]
            for h in receivers:
                for m in program.lookup(program.heap_types[h], *self.lambdas_of[heap][4:]):
                    self.receive(invocation, h, m)
        method = self.lambda_target(heap)
        if method is None:
            return
        self.lambda_edges.add((invocation, heap, method))
        self.reachable.add(method)
        self.pass_captured(heap, method)
        for n, v in self.actuals[invocation].items():
            place = n + shift
            to = self.this.get(method) if place == -1 else self.formals.get((method, place))
            if to is not None:
                self.var[to] |= self.var[v]
        if heap in self.constructed and method in self.this:
            self.var[self.this[method]].add(self.constructed[heap])
        if invocation in self.results:
            for v in self.returns[method]:
                self.var[self.results[invocation][1]] |= self.var[v]

    def throw(self, instruction: str, heap: str, method: str) -> None:
        above = self.program.supertypes[self.program.heap_types[heap]]
        for order in sorted(self.handlers[instruction]) if THROWABLE in above else ():
            caught, variable = self.caught[self.handlers[instruction][order]]
            if caught in above:
                self.var[variable].add(heap)
                return
        self.thrown[method].add(heap)

    def exceptions(self) -> None:
        program = self.program
        for i, v, m in program["Throw"]:
            for h in list(self.var[v]):
                self.throw(i, h, m)
        calls = [(i, m) for i, m in self.edges] + [(i, m) for i, _, m in self.lambda_edges]
        callers = {
            row[0]: row[-1] for kind in ("Virtual", "Special", "Static") for row in program[f"{kind}MethodInvocation"]
        }
        for i, callee in calls:
            for h in list(self.thrown[callee]):
                self.throw(i, h, callers[i])

    def outside(self) -> None:
        """Calls of code that was not read: they give unknown objects, and call back what they are given."""
        program, called = self.program, set()
        for relation in ("StaticMethodInvocation", "SpecialMethodInvocation"):
            for i, c, n, d, *_, m in program[relation]:
                targets = program.fixed(c, n, d)
                if m in self.reachable and (not targets or targets & self.natives):
                    called.add(i)
        for i, _, n, d, base, _ in program["VirtualMethodInvocation"]:
            for h in self.var[base]:
                if h not in self.lambdas_of and not program.lookup(program.heap_types[h], n, d):
                    called.add(i)
        for i in called:
            if i in self.results:
                self.var[self.results[i][1]] |= program.unknown(self.results[i][0])
            for v in self.actuals[i].values():
                for h in list(self.var[v]):
                    self.call_back(h)

    def call_back(self, heap: str) -> None:
        program = self.program
        type_ = program.heap_types[heap]
        public = {m for (m,) in program["PublicMethod"]}
        if program.is_open(type_) and type_ in program.instantiable:
            for n, d in {(n, d) for _, _, n, d in program["Method"]}:
                for m in program.lookup(type_, n, d) & public:
                    self.reachable.add(m)
                    self.var[self.this[m]].add(heap) if m in self.this else None
                    self.unknown_arguments(m)
        if heap in self.lambdas_of:
            method = self.lambda_target(heap)
            if method is not None:
                self.reachable.add(method)
                self.pass_captured(heap, method)
                passed = {self.formals.get((method, n)) for n in range(self.shifts[heap], 255)}
                for n, m, t in program["FormalType"]:
                    if m == method and self.formals.get((m, n)) in passed - {None}:
                        self.var[self.formals[m, n]] |= program.unknown(t)
