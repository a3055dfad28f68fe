/* Events: of one object (or a part of one) and reason at most one in five minutes, but for one that was lost
 * on its way; nobody waits for the answer. */
#pragma once

#include "base/name_map.h"
#include "store/kubernetes/operation.h"

struct events {
        struct operation_list *operations; /* borrowed */
        struct name_map said;              /* in the last minutes */
        uint64_t look_usec;                /* when those whose silence is over are looked for next */
};

void events_write(struct events *events, const struct store_event *event);
void events_forget(struct events *events); /* all that was said; frees */
