"""Sorts and consolidates rows.

build     makes one sorted, consolidated rows object of any chunks of updates
coded     build for rows of more than a word that repeat their words: sorts ranks
combined  adds up the diffs of equal rows without sorting them
gathered  build for rows of more than a word: sorts row numbers, then gathers
numbers   sorts numbers by a comparison that the caller passes in
packed    build for rows that fit one word: sorts these words and unpacks them
radix     sorts 64-bit words by radix and insertion
"""
