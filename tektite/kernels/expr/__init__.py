"""The interpreter of expression programs.

interpreter  the interpreter of expression programs: rows in, selected and computed rows out, one block of rows at a time
memo         a function of one to three words, remembered for the arguments it has met
steps        the steps of an expression program: each is one loop over a block of words
"""
