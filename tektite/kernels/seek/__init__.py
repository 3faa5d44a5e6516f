"""Finds keys in sorted rows; splits rows by shard and time.

candidates  the rows of each key in each batch of an arrangement, for intersections
intervals   finds the intervals that contain the words of a column
keys        finds blocks of keys in sorted rows
route       splits rows by shard, moment or epoch; changes a column by a constant
"""
