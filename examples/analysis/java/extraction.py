"""The facts of classes: hierarchy, members, and the bodies of methods, from .class files, jars and folders of them.

`classes(paths)` reads, and `program_units(classes)` gives the facts. Facts say nothing of classes that were not read: the
analysis treats what is called there as unknown.
"""

from __future__ import annotations

import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from examples.analysis.java.classfile import BadClassFile, ClassFile, is_reference, read_class, signature, type_name
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


def program_units(found: Iterable[ClassFile]) -> dict[str, Facts]:
    """The facts of some classes by unit: the declarations of each class, and the body of each method. A class that comes twice
    counts once, the first time.
    """
    units: dict[str, Facts] = {}
    for one in found:
        if one.name in units:
            continue
        units[one.name] = with_arrays(class_facts(one))
        for member in one.methods:
            if member.code:
                name = method_name(one.name, member.name, member.descriptor)
                units[name] = with_arrays(body_facts(one, member))
    return units


# Columns that name types.
TYPES = {"AssignHeapAllocation": 1, "AssignCast": 0, "AssignReturnValue": 1, "FormalType": 2, "LoadStaticField": 2}


def with_arrays(facts: Facts) -> Facts:
    """The facts, and the types of arrays that they name, each with the type of its elements."""
    named = {str(row[column]) for relation, column in TYPES.items() for row in facts.get(relation, ())}
    nested = {name[: len(name) - 2 * depth] for name in named for depth in range(name.count("[]"))}
    arrays: list[Row] = [(name, name[:-2]) for name in sorted(nested)]
    return facts | {"ArrayType": arrays} if arrays else facts


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
