"""Facts of Java bytecode: what DOOP's fact generator gives for a program, read from .class files and jars.

bytecode    the instructions of the Java virtual machine: length, targets, effect on the stack
classfile   the class-file format: constant pool, fields, methods, code
extraction  the facts of classes: hierarchy, members, and the bodies of methods
questions   what can be asked of a Java program
relations   the relations of facts, and their columns
stack       the operand stack run symbolically: the facts of one method's body
"""
