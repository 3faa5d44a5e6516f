"""Sorting and consolidating rows.

build     any number of chunks of updates in any order become one sorted, consolidated rows object
gathered  build where a row's key and diffs take more than a word: sort row numbers, then gather
packed    build where a row's key and diffs fit one word together: sort those words and unpack everything from them
radix     sorting 64-bit words: LSD radix passes over the leading bits, insertion for the short runs that these leave
"""
