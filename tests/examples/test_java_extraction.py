"""Facts of Java bytecode: what a body says, and that every body says something consistent."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pyspark
import pytest

from examples.analysis.fact_base import Row
from examples.analysis.java.classfile import BadClassFile
from examples.analysis.java.extraction import classes, program_units
from examples.analysis.java.relations import NUMBERS, RELATIONS
from examples.analysis.watched import RULES

SAMPLE = Path(__file__).parent / "data" / "java" / "main.jar"
JARS = Path(pyspark.__file__).parent / "jars"


def facts_of(path: Path) -> dict[str, set[Row]]:
    found: dict[str, set[Row]] = defaultdict(set)
    for unit in program_units(classes([path])).values():
        for relation, rows in unit.items():
            found[relation].update(rows)
    return found


def test_a_body_becomes_variables_and_assignments() -> None:
    found = program_units(classes([SAMPLE]))["Main$Box.put(java.lang.Object)void"]
    method = "Main$Box.put(java.lang.Object)void"
    assert found["ThisVar"] == [(method, f"{method}/@this")]
    assert found["FormalParam"] == [(0, method, f"{method}/@parameter0")]
    assert found["StoreInstanceField"] == [(f"{method}/@parameter0", f"{method}/@this", "Main$Box", "content", method)]


def test_branches_that_meet_with_a_value_on_the_stack_assign_it_to_one_variable() -> None:
    method = "Main.arrays()java.lang.Object[]"
    found = program_units(classes([SAMPLE]))[method]
    joined = {source for source, to, _ in found["AssignLocal"] if to == f"{method}/join/1"}
    assert joined == {f"{method}/new Main$Horn/0#value", f"{method}/array load/3#value"}
    # Below it on the stack lies the array that the value is stored into.
    ((_, base, _),) = [row for row in found["StoreArrayIndex"] if row[0] == f"{method}/join/1"]
    assert base == f"{method}/join/0"


def test_handlers_are_tried_in_order_for_the_calls_that_they_cover() -> None:
    found = facts_of(SAMPLE)
    (handler,) = {handler for instruction, _, handler in found["HandlerOf"] if "catching" in str(instruction)}
    assert [row[1] for row in found["ExceptionHandler"] if row[0] == handler] == ["Main$Trouble"]
    assert {row[0] for row in found["HandlerOf"] if row[2] == handler} == {
        "Main.catching(boolean)java.lang.Object/Main.fail/0"
    }


def test_lambdas_say_their_target_and_what_they_capture() -> None:
    found = facts_of(SAMPLE)
    kinds = {str(row[0]).rpartition("/lambda ")[2]: row[2:5] for row in found["LambdaAllocation"]}
    assert kinds["java.util.function.Function/0"] == ("static", "Main", "identity")
    assert kinds["java.util.function.Supplier/1"] == ("construct", "Main$Box", "<init>")
    assert [row[1:] for row in found["LambdaCapture"]] == [(0, "Main.lambdas(Main$Cat)java.lang.Object/@parameter0")]


@pytest.mark.parametrize("jar", ["minlog-*.jar", "opencsv-*.jar", "oro-*.jar", "commons-cli-*.jar"])
def test_every_variable_that_is_read_is_written(jar: str) -> None:
    (path,) = JARS.glob(jar)
    found = facts_of(path)
    written = {
        "ThisVar": 1, "FormalParam": 2, "AssignHeapAllocation": 2, "AssignNull": 0, "AssignLocal": 1, "AssignCast": 2,
        "LoadInstanceField": 3, "LoadStaticField": 3, "LoadArrayIndex": 1, "AssignReturnValue": 2, "ExceptionHandler": 2,
    }  # fmt: skip
    read = {
        "AssignLocal": (0,), "AssignCast": (1,), "LoadInstanceField": (0,), "StoreInstanceField": (0, 1),
        "StoreStaticField": (0,),
        "LoadArrayIndex": (0,), "StoreArrayIndex": (0, 1), "VirtualMethodInvocation": (4,), "SpecialMethodInvocation": (4,),
        "ActualParam": (2,), "ReturnVar": (1,), "Throw": (1,), "LambdaCapture": (2,), "Dereference": (1,), "NullCheck": (1,),
    }  # fmt: skip
    defined = {row[column] for relation, column in written.items() for row in found[relation]}
    used = {row[column] for relation, columns in read.items() for row in found[relation] for column in columns}
    assert used <= defined
    assert len(used) > 20


def declarations(text: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The relations that a Datalog text declares, with the names and types of their columns."""
    return {
        name: tuple(tuple(column.split(": ")) for column in columns.split(", "))
        for name, columns in re.findall(r"^\.decl (\w+)\((.*)\)$", text, re.MULTILINE)
    }


def test_rules_declare_the_relations_that_extraction_gives() -> None:
    text = (RULES / "java" / "facts.dl").read_text()
    declared = declarations(text)
    given = {
        name: tuple((column, "number" if column in NUMBERS else "symbol") for column in columns)
        for name, columns in RELATIONS.items()
    }
    stated = {"TaintSource", "TaintSink", "TaintSanitizer", "EntryPoint"}
    assert {name: columns for name, columns in declared.items() if name not in stated} == given
    named = {name.strip() for line in re.findall(r"^\.input (.*)$", text, re.MULTILINE) for name in line.split(",")}
    assert named == {*declared}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "4 bytes wanted at byte 0, and the file has 0"),
        (b"\xca\xfe\xba\xbf" + bytes(20), "begins with the bytes CA FE BA BE"),
        (b"\xca\xfe\xba\xbe\0\0\0\x34\0\x02\x63", "entry 1 of the constant pool has the unknown tag 99"),
        (b"\xca\xfe\xba\xbe\0\0\0\x34\0\x01" + bytes(6), "not what byte 14 needs"),
    ],
)
def test_bytes_that_are_no_class_are_an_error_that_names_the_file(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "Broken.class"
    path.write_bytes(data)
    with pytest.raises(BadClassFile, match=f"Broken.class: .*{message}"):
        list(classes([path]))


def test_a_file_that_is_no_jar_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "some.jar"
    path.write_text("no")
    with pytest.raises(BadClassFile, match="some.jar: neither a class file nor a jar"):
        list(classes([path]))
