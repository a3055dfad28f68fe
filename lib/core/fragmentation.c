#include "core/fragmentation.h"

/* Chips that are free, but of no use to typical pods larger than what is free. */
static int64_t fragmentation(enum node_class node_class, uint32_t open)
{
        int64_t lost = 0;

        for (uint32_t i = 0; i < FRAGMENTATION_SIZES; i++) {
                uint32_t typical = 1u << i;

                if (node_class == NODE_CLASS_SINGLE && typical > 1)
                        break;
                if (node_class == NODE_CLASS_MULTI && typical == 1)
                        continue;
                if (typical > open && typical <= 8)
                        lost += open;
        }
        return lost;
}

int64_t fragmentation_growth(enum node_class node_class, uint32_t open, uint32_t chips)
{
        return fragmentation(node_class, open - chips) - fragmentation(node_class, open);
}
