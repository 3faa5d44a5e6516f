"""Finding keys in sorted rows, and taking rows apart by shard and time.

candidates  where the words that may extend a row lie: for each key, its rows in each batch of an arrangement
keys        finding keys in sorted rows
route       by shard, by moment, by epoch; and changing one column by a constant
"""
