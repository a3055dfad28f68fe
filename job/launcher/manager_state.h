/* What the job's people are told: events, the state, the result. */
#pragma once

#include "job/launcher/manager.h"

void manager_state_event(struct manager *manager, const char *reason, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* manager_state_text() - JSON; what does not fit is left out, the least wanted first. Caller frees; NULL = no
 * memory. */
char *manager_state_text(const struct manager *manager, size_t max_bytes);
void manager_state_write(void *userdata);                       /* --status; of a struct manager */
void manager_state_write_result(const struct manager *manager); /* --result */
