"""The relations of facts that extraction gives, and their columns. `rules/java/facts.dl` declares the same ones to Datalog.

Names are those of DOOP where the relation is DOOP's. `BODY` holds what comes from the bodies of methods: each of its facts
belongs to one method, and a new version of the method replaces them. `CLASS` holds what comes from the declarations of a
class.
"""

from __future__ import annotations

CLASS: dict[str, tuple[str, ...]] = {
    "ClassType": ("class",),
    "InterfaceType": ("interface",),
    "AbstractType": ("class",),
    "PublicType": ("class",),
    "DirectSuperclass": ("class", "superclass"),
    "DirectSuperinterface": ("class", "interface"),
    "ArrayType": ("array", "component"),
    "Field": ("field", "class", "name", "type"),
    "StaticField": ("field",),
    "Method": ("method", "class", "name", "descriptor"),
    "ConcreteMethod": ("method",),
    "StaticMethod": ("method",),
    "PublicMethod": ("method",),
    "NativeMethod": ("method",),
    "PrivateMethod": ("method",),
    "FormalType": ("index", "method", "type"),
    "ReturnType": ("method", "type"),
    "DeclaredException": ("method", "type"),
}

BODY: dict[str, tuple[str, ...]] = {
    "ThisVar": ("method", "variable"),
    "FormalParam": ("index", "method", "variable"),
    "ReturnVar": ("method", "variable"),
    "AssignHeapAllocation": ("heap", "type", "to", "method"),
    "AssignNull": ("to", "method"),
    "AssignLocal": ("from", "to", "method"),
    "AssignCast": ("type", "from", "to", "cast", "method"),
    "LoadInstanceField": ("base", "class", "name", "to", "method"),
    "StoreInstanceField": ("from", "base", "class", "name", "method"),
    "LoadStaticField": ("class", "name", "type", "to", "method"),
    "StoreStaticField": ("from", "class", "name", "method"),
    "LoadArrayIndex": ("base", "to", "method"),
    "StoreArrayIndex": ("from", "base", "method"),
    "VirtualMethodInvocation": ("invocation", "class", "name", "descriptor", "base", "method"),
    "SpecialMethodInvocation": ("invocation", "class", "name", "descriptor", "base", "method"),
    "StaticMethodInvocation": ("invocation", "class", "name", "descriptor", "method"),
    "ActualParam": ("index", "invocation", "variable"),
    "AssignReturnValue": ("invocation", "type", "to"),
    "Throw": ("throw", "variable", "method"),
    "ExceptionHandler": ("handler", "type", "variable", "method"),
    "HandlerOf": ("instruction", "order", "handler"),
    "StaticAccess": ("class", "method"),
    "LambdaAllocation": ("heap", "name", "kind", "class", "method_name", "descriptor"),
    "LambdaCapture": ("heap", "index", "variable"),
    "LambdaShift": ("heap", "shift"),
    "LambdaConstruction": ("heap", "constructed", "type"),
    "Dereference": ("instruction", "variable", "method"),
    "NullCheck": ("instruction", "variable", "method"),
    "SkippedBody": ("method",),
}

RELATIONS = CLASS | BODY

# Columns of numbers; all others are texts.
NUMBERS = {"index", "order", "shift"}
