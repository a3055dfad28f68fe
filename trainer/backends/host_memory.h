/* Host memory: what backends that compute on the host allocate: 64-byte aligned, zeroed. For their rows. */
#pragma once

#include <stdlib.h>
#include <string.h>

static inline void *host_memory_allocate(void *state, size_t size_bytes)
{
        size_t rounded = (size_bytes + 63) / 64 * 64;
        void *memory = aligned_alloc(64, rounded);

        (void) state;
        if (memory != NULL)
                memset(memory, 0, rounded);
        return memory;
}

static inline void host_memory_release(void *state, void *memory)
{
        (void) state;
        free(memory);
}
