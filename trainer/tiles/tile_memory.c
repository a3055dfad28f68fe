/* The limits that the kernel tells. */
#include "trainer/tiles/tile_memory.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

#define MB 1000000

/* UINT64_MAX where the file is not there, or says "max". */
static uint64_t number_in(const char *root, const char *folder, const char *file)
{
        char path[4096], line[64];
        CLEANUP(fclose_p)
        FILE *f = text_format(path, sizeof(path), "%s/sys/fs/cgroup%s/%s", root, folder, file)
                          ? fopen(path, "re")
                          : NULL;
        uint64_t bytes;

        if (f == NULL || fgets(line, sizeof(line), f) == NULL)
                return UINT64_MAX;
        line[strcspn(line, "\n")] = '\0';
        return text_parse_uint64(line, &bytes) == 0 && bytes > 0 ? bytes : UINT64_MAX;
}

/* The folder of this process's group, as version 2 tells it in a line "0::/FOLDER"; "" = none. */
static void own_folder(const char *root, char *ret, size_t ret_bytes)
{
        char path[4096], line[2048];
        CLEANUP(fclose_p)
        FILE *f = text_format(path, sizeof(path), "%s/proc/self/cgroup", root) ? fopen(path, "re") : NULL;

        ret[0] = '\0';
        while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
                line[strcspn(line, "\n")] = '\0';
                if (text_starts_with(line, "0::/"))
                        (void) text_copy(ret, ret_bytes, line + strlen("0::"));
        }
}

uint64_t tile_memory_of_group(const char *root)
{
        char own[2048];
        uint64_t least = number_in(root, "/memory", "memory.limit_in_bytes");

        own_folder(root, own, sizeof(own));
        for (;;) { /* a group has no more than those that it is in */
                uint64_t bytes = number_in(root, own, "memory.max");
                char *slash = strrchr(own, '/');

                least = bytes < least ? bytes : least;
                if (slash == NULL)
                        return least;
                *slash = '\0';
        }
}

static uint64_t host_bytes(void)
{
        long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
        uint64_t all = pages > 0 && page > 0 ? (uint64_t) pages * (uint64_t) page : UINT64_MAX,
                 group = tile_memory_of_group("");

        return group < all ? group : all;
}

uint64_t tile_memory_bytes(const struct train_options *o, const struct backend *b, int local_ranks)
{
        uint64_t memory = b->memory_bytes > 0 ? b->memory_bytes : host_bytes();

        if (o->tiles_none)
                return 0;
        return o->tile_mbytes > 0 ? (uint64_t) o->tile_mbytes * MB
                                  : memory / 2 / (uint64_t) (local_ranks > 0 ? local_ranks : 1);
}
