"""Merging two sorted, consolidated rows objects, a little at a time.

merge  merge two sorted, consolidated rows objects into one, a little at a time, compacting times on the way
order  in which order a merge takes the rows of its inputs: the next ones by data and time, whole groups where times are
       sorted again
state  an int64 array that kernels read and write by address
"""
