/* DRA share: what one of several claims of a device has that does not say how much. */
#include "agent/inventory/dra_share.h"

uint64_t dra_share_memory(const struct dra_share_room *room)
{
        return room->memory_bytes / (room->shares > 1 ? room->shares : 1);
}
