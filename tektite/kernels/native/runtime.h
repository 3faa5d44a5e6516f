/* Memory of kernels, as the code that Numba generates sees it: a block with a count of references, and arrays that point to one.

   The layout is Numba's: generated code reads and writes `references` and `data` itself. */

#ifndef TEKTITE_RUNTIME_H
#define TEKTITE_RUNTIME_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    atomic_size_t references;
    void *owned;                /* freed with the block, if it is not part of it */
    void (*end)(void *data);    /* called before that */
    void *data;
    size_t size;
    void *allocator;            /* Numba's; not used here */
} Block;

/* An array is five words, then the length of each dimension, then the bytes from one element to the next in each. */
enum { ARRAY_BLOCK, ARRAY_PARENT, ARRAY_ITEMS, ARRAY_ITEM_SIZE, ARRAY_DATA, ARRAY_SHAPE };

#endif
