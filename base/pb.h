/* Protobuf arena: bounded memory for reading one message: a few bytes that claim a million empty parts are
 * refused instead of being paid for. Pure but for the heap. */
#pragma once

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

struct pb_block;

struct pb_arena {
        ProtobufCAllocator allocator; /* hand this to NAME__unpack() */
        struct pb_block *blocks;
        size_t used_bytes, max_bytes;
        bool failed; /* something was not given: asked once, after all has been taken */
};

/* pb_arena_init() - empty, at most max_bytes in all. */
void pb_arena_init(struct pb_arena *arena, size_t max_bytes);
void pb_arena_free(struct pb_arena *arena); /* everything taken from it is gone */

/* pb_arena_take() - zeroed memory, aligned for anything. NULL when the arena is spent or memory is out. */
void *pb_arena_take(struct pb_arena *arena, size_t size_bytes);

/* pb_arena_copy() - a string of the arena's own; NULL as above. */
char *pb_arena_copy(struct pb_arena *arena, const char *string);

/* pb_unpack() - NAME__unpack() with the arena. Return: NULL when malformed or too large for the arena. */
void *pb_unpack(struct pb_arena *arena, const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes,
                size_t size_bytes);

/* pb_pack() - malloc'd bytes; an empty message gives a valid pointer and size 0. NULL when out of memory. */
uint8_t *pb_pack(const void *message, size_t *ret_bytes);
