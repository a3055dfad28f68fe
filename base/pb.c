/* Blocks of memory that are given back all at once, up to a limit. */
#include "base/pb.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t) 4096)

struct pb_block {
        struct pb_block *next;
        size_t used_bytes, size_bytes;
        _Alignas(16) unsigned char data[];
};

static void *arena_alloc(void *userdata, size_t size)
{
        return pb_arena_take(userdata, size);
}

static void arena_release(void *userdata, void *memory)
{
        (void) userdata;
        (void) memory;
}

void pb_arena_init(struct pb_arena *arena, size_t max_bytes)
{
        *arena = (struct pb_arena){
                .allocator = { .alloc = arena_alloc, .free = arena_release, .allocator_data = arena },
                .max_bytes = max_bytes,
        };
}

void pb_arena_free(struct pb_arena *arena)
{
        while (arena->blocks != NULL) {
                struct pb_block *next = arena->blocks->next;

                free(arena->blocks);
                arena->blocks = next;
        }
        arena->used_bytes = 0;
        arena->failed = false;
}

static struct pb_block *block_with_room(struct pb_arena *arena, size_t size)
{
        struct pb_block *block = arena->blocks;
        size_t capacity = size > BLOCK_BYTES ? size : BLOCK_BYTES;

        if (block != NULL && block->size_bytes - block->used_bytes >= size)
                return block;
        block = malloc(sizeof(*block) + capacity);
        if (block == NULL)
                return NULL;
        block->size_bytes = capacity;
        block->used_bytes = 0;
        block->next = arena->blocks;
        arena->blocks = block;
        return block;
}

void *pb_arena_take(struct pb_arena *arena, size_t size_bytes)
{
        size_t size = size_bytes == 0 ? 16 : (size_bytes + 15) & ~(size_t) 15;
        struct pb_block *block;
        void *memory;

        arena->failed |= size < size_bytes || size > arena->max_bytes - arena->used_bytes;
        block = arena->failed ? NULL : block_with_room(arena, size);
        arena->failed |= block == NULL;
        if (block == NULL)
                return NULL;
        memory = block->data + block->used_bytes;
        block->used_bytes += size;
        arena->used_bytes += size;
        return memset(memory, 0, size);
}

char *pb_arena_copy(struct pb_arena *arena, const char *string)
{
        size_t n = strlen(string) + 1;
        char *copy = pb_arena_take(arena, n);

        return copy == NULL ? NULL : memcpy(copy, string, n);
}

void *pb_unpack(struct pb_arena *arena, const ProtobufCMessageDescriptor *descriptor, const uint8_t *bytes,
                size_t size_bytes)
{
        static const uint8_t nothing[1];

        return protobuf_c_message_unpack(descriptor, &arena->allocator, size_bytes,
                                         bytes == NULL ? nothing : bytes);
}

uint8_t *pb_pack(const void *message, size_t *ret_bytes)
{
        size_t size = protobuf_c_message_get_packed_size(message);
        uint8_t *bytes = malloc(size + 1);

        if (bytes == NULL)
                return NULL;
        *ret_bytes = protobuf_c_message_pack(message, bytes);
        return bytes;
}
