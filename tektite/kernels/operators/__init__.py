"""The inner loops of the dataflow operators and of inputs.

accumulate     turns rows into keys whose diff columns are summed by linear aggregates
aggregate      linear aggregates: sums, and the values computed from them
chain          the output of a key at many epochs, in one pass over its rows
collect        a reduce by a Python function: finds its groups, and emits its results
combinations   what an intersection writes for a word: a record for each combination of rows
emit           writes the differences between a key's old and new values
epochs         the epochs at which a grouping kernel evaluates a key
extenders      the extenders of an intersection, and the filter of words
groups         sums rows of few groups by hashing, before sorting
intersect      worst-case optimal intersection: extends rows by one variable
intersect_two  the same for two arrangements that are complete: lists the values of the variable, or counts them
join           all pairs of rows with equal keys, in bounded chunks
limbs          exact sums of floats, as integers in limbs
pairs          writes pairs of rows of two sides, column by column
range_filter   rows on one side of a bound of their key, when bounds move
rectangles     finds the pairs of rows that a join writes, as rectangles
reduce         one moment of a reduce on one shard
reduce_blocks  the paths of a reduce that evaluate a block of keys at one epoch
reduce_keys    the path of a reduce that evaluates each key at each of its epochs
runs           runs of words of two arrangements, intersected run by run
sources        the sources of a grouping kernel, and a key's rows in each
sums           exact sums of 64-bit diffs, in any order
upsert         set and upsert semantics of inputs, and checks of their constraints
values         the first or last values of a key, and the operator's previous output
wide           128-bit numbers as pairs of words, and overflow tests
window_frames  totals over moving frames, for window functions
"""
