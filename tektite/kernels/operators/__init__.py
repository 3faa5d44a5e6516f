"""The inner loops of the dataflow operators and of inputs.

accumulate     rows become keys whose diff columns hold what linear aggregates sum up
aggregate      aggregates that are linear in the rows of a group: sums that come and go with rows, and what is read off them
chain          what a key shows at each of many epochs, where every row of the key is looked at once and not once an epoch
collect        a reduce whose operator is a Python function, in two kernels around it
emit           the differences between a key's former values and its new ones
epochs         when a grouping kernel evaluates a key: its epochs at this moment, and the later times that are left to do
groups         rows of one key and time are added up as they are read, before anything is sorted
intersect      extending rows by one variable that several arrangements talk about, all in one go: worst-case optimal
               intersection
join           all pairs of rows that agree on a key, with times at their least upper bound and diffs multiplied, in bounded
               chunks
limbs          floats as integers that are cut into limbs: sums of them are exact whatever the order, and rounded once, when
               read
range_filter   rows whose value lies on one side of a bound of their key: the differences that bounds make, as runs of rows
reduce         one moment of a reduce on one shard: what a group should show now, less what it shows already
sources        the sources of a grouping kernel, and where a key's rows lie in each
sums           exact sums of 64-bit diffs: wrapped sums beside what they owe to the word above, so that no order of adding
               matters
upsert         inputs with set and upsert semantics: operations in order of arrival become updates; and checks of what inputs
               gain
values         its first or last values among all sources, and what the operator itself has shown so far
wide           128-bit numbers as pairs of words (high, low), and overflow tests for 64-bit ones
window_frames  totals over frames that move along rows: what window functions compute
"""
