/* A stack of free blocks for each size; the link is in the block. */
#include "base/json/json_memory.h"

#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>

/* A block of class c has 16 c + 8 bytes at least, which is what glibc makes of every size: 24, 40, 56... */
#define CLASSES     64
#define CLASS_BYTES 16
#define FIRST_BYTES 8

struct block {
        struct block *next;
};

static struct {
        struct block *first;
        size_t bytes;
} waiting[CLASSES];

static void *take(size_t bytes)
{
        size_t which = bytes <= CLASS_BYTES + FIRST_BYTES
                               ? 1
                               : (bytes - FIRST_BYTES + CLASS_BYTES - 1) / CLASS_BYTES;
        struct block *block;

        if (which >= CLASSES || waiting[which].first == NULL)
                return malloc(bytes);
        block = waiting[which].first;
        waiting[which].first = block->next;
        waiting[which].bytes -= (which + 1) * CLASS_BYTES;
        return block;
}

static void give_back(void *memory)
{
        size_t which = (malloc_usable_size(memory) - FIRST_BYTES) / CLASS_BYTES; /* of NULL: beyond all */
        struct block *block = memory;

        if (which == 0 || which >= CLASSES || waiting[which].bytes >= JSON_MEMORY_BYTES) {
                free(memory);
                return;
        }
        block->next = waiting[which].first;
        waiting[which].first = block;
        waiting[which].bytes += (which + 1) * CLASS_BYTES;
}

void json_memory_keep(void)
{
        json_set_alloc_funcs(take, give_back);
}

void json_memory_release(void)
{
        json_set_alloc_funcs(malloc, free);
        for (size_t which = 0; which < CLASSES; which++)
                while (waiting[which].first != NULL) {
                        struct block *block = waiting[which].first;

                        waiting[which].first = block->next;
                        waiting[which].bytes -= (which + 1) * CLASS_BYTES;
                        free(block);
                }
}
