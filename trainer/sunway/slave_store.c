/* The local store where slave cores are stood in for: memory like any other, with its traffic counted. */
#include <string.h>

#include "trainer/sunway/slave_cores.h"

void local_get(struct slave_core *core, void *local, const void *main_memory, size_t bytes)
{
        memcpy(local, main_memory, bytes);
        core->read_bytes += bytes;
}

void local_put(struct slave_core *core, void *main_memory, const void *local, size_t bytes)
{
        memcpy(main_memory, local, bytes);
        core->written_bytes += bytes;
}
