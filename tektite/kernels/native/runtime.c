/* The functions of Numba's run time that kernels call. Every library of kernels has them, private to it. */

#include <stdlib.h>

#include "runtime.h"

#define PRIVATE __attribute__((visibility("hidden")))

/* np.empty and its like. */
PRIVATE Block *NRT_MemInfo_alloc_aligned(size_t size, unsigned align) {
    Block *block = malloc(sizeof(Block) + size + align);
    if (block == NULL)
        return NULL;
    uintptr_t behind = (uintptr_t)(block + 1);
    block->references = 1;
    block->owned = NULL;
    block->end = NULL;
    block->data = (void *)((behind + align - 1) / align * align);
    block->size = size;
    block->allocator = NULL;
    return block;
}

/* Lists: their memory grows, so it is apart from the block. */
PRIVATE Block *NRT_MemInfo_new_varsize_dtor(size_t size, void (*end)(void *)) {
    Block *block = malloc(sizeof(Block));
    void *data = malloc(size);
    if (block == NULL || data == NULL) {
        free(block);
        free(data);
        return NULL;
    }
    block->references = 1;
    block->owned = block->data = data;
    block->end = end;
    block->size = size;
    block->allocator = NULL;
    return block;
}

/* Called by generated code when the last reference is gone. */
PRIVATE void NRT_MemInfo_call_dtor(Block *block) {
    if (block->end != NULL)
        block->end(block->data);
    free(block->owned);
    free(block);
}
