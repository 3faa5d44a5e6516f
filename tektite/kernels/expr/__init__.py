"""The interpreter of expression programs.

checked        one step over columns, with the rows that it fails on
date_steps     steps on day numbers, and the calendar
dispatch       runs one step over a block of words
float_steps    steps on floats, and between floats and integers
integer_steps  steps on integers, and on bits
interpreter    runs a program over rows: filter and map
logic_steps    comparisons, three-valued logic and choices
memo           tables of results of functions of one to three words
program        the layout of a program
registers      the registers of a program: blocks of words
run            runs the steps of a program over all rows, one block at a time
steps          the steps of a program: their numbers, and what each computes
"""
