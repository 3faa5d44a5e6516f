"""The facts of classes: hierarchy, members, and the bodies of methods, from .class files, jars and folders of them.

`classes(paths)` reads, `class_facts(one)` gives the declarations of a class and `program_facts(classes)` everything. Facts say nothing of
classes that were not read: the analysis treats what it calls there as unknown.
"""

from __future__ import annotations

import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from examples.analysis.java.classfile import BadClassFile, ClassFile, is_reference, read_class, signature, type_name
from examples.analysis.java.relations import RELATIONS
from examples.analysis.java.stack import ABSTRACT, NATIVE, STATIC, Facts, Row, body_facts, method_name

PUBLIC, PRIVATE, PROTECTED, INTERFACE, MODULE = 0x0001, 0x0002, 0x0004, 0x0200, 0x8000


def classes(paths: Iterable[Path]) -> Iterator[ClassFile]:
    """The classes in .class files, jars, and folders of either. Of a jar for several Java versions the base version is read."""
    for path in paths:
        if path.is_dir():
            yield from classes(sorted([*path.rglob("*.class"), *path.rglob("*.jar")]))
        elif path.suffix == ".class":
            yield checked(path.read_bytes(), str(path))
        else:
            yield from in_jar(path)


def in_jar(path: Path) -> Iterator[ClassFile]:
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise BadClassFile(f"{path}: neither a class file nor a jar") from error
    with archive:
        for name in sorted(archive.namelist()):
            if name.endswith(".class") and not name.startswith("META-INF/"):
                found = checked(archive.read(name), f"{path}!{name}")
                if not found.flags & MODULE:
                    yield found


def checked(data: bytes, place: str) -> ClassFile:
    try:
        return read_class(data)
    except BadClassFile as error:
        raise BadClassFile(f"{place}: {error}") from error


def program_facts(found: Iterable[ClassFile]) -> Facts:
    """All facts of some classes; a class that comes twice counts once, the first time."""
    facts: dict[str, dict[Row, None]] = {relation: {} for relation in RELATIONS}
    seen = set()
    for one in found:
        if one.name in seen:
            continue
        seen.add(one.name)
        parts = [class_facts(one), *(body_facts(one, member) for member in one.methods if member.code)]
        for part in parts:
            for relation, rows in part.items():
                facts[relation].update(dict.fromkeys(rows))
    facts["ArrayType"].update(dict.fromkeys(array_types(facts)))
    return {relation: list(rows) for relation, rows in facts.items()}


def array_types(facts: dict[str, dict[Row, None]]) -> Iterator[Row]:
    """The types of arrays that the facts name, each with the type of its elements."""
    named = {row[1] for row in facts["AssignHeapAllocation"]} | {row[0] for row in facts["AssignCast"]}
    named |= {row[2] for row in facts["FormalType"]} | {row[1] for row in facts["AssignReturnValue"]}
    named |= {row[2] for row in facts["LoadStaticField"]}
    for name in sorted(str(one) for one in named):
        while name.endswith("[]"):
            yield name, name[:-2]
            name = name[:-2]


def class_facts(one: ClassFile) -> Facts:
    """What the declarations of a class say."""
    facts: Facts = defaultdict(list)
    facts["InterfaceType" if one.flags & INTERFACE else "ClassType"].append((one.name,))
    if one.flags & (ABSTRACT | INTERFACE):
        facts["AbstractType"].append((one.name,))
    if one.flags & PUBLIC:
        facts["PublicType"].append((one.name,))
    if one.superclass and not one.flags & INTERFACE:
        facts["DirectSuperclass"].append((one.name, one.superclass))
    facts["DirectSuperinterface"].extend((one.name, interface) for interface in one.interfaces)
    for field in one.fields:
        name = f"{one.name}.{field.name}"
        facts["Field"].append((name, one.name, field.name, type_name(field.descriptor)))
        if field.flags & STATIC:
            facts["StaticField"].append((name,))
    for method in one.methods:
        name = method_name(one.name, method.name, method.descriptor)
        facts["Method"].append((name, one.name, method.name, method.descriptor))
        kinds = {
            "StaticMethod": method.flags & STATIC,
            "PublicMethod": method.flags & (PUBLIC | PROTECTED),
            "PrivateMethod": method.flags & PRIVATE,
            "NativeMethod": method.flags & NATIVE,
            "ConcreteMethod": not method.flags & ABSTRACT,
        }
        for relation, holds in kinds.items():
            if holds:
                facts[relation].append((name,))
        parameters, result = signature(method.descriptor)
        for index, parameter in enumerate(parameters):
            if is_reference(parameter):
                facts["FormalType"].append((index, name, type_name(parameter)))
        if is_reference(result):
            facts["ReturnType"].append((name, type_name(result)))
        facts["DeclaredException"].extend((name, thrown) for thrown in method.exceptions)
    return dict(facts)
