"""Finds keys in sorted rows; splits rows by shard and time.

candidates  the rows of each key in each batch of an arrangement, for intersections
intervals   finds the intervals that contain the words of a column
keys        finds blocks of keys in sorted rows
moments     splits rows by moment
numbering   numbers rows by the words of some columns
route       splits rows by shard or epoch
search      searches in sorted rows and columns: gallop, scan, interpolation
shift       changes one column by a constant
stretch     finds the places of rows in batches, and words in a stretch
"""
