"""The interpreter of expression programs.

checked      one step over columns, with the rows that it fails on
interpreter  runs a program over rows, one block at a time: filter and map
memo         tables of results of functions of one to three words
steps        the steps of a program: each is one loop over a block of words
"""
