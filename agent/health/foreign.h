/* Foreign: processes outside any pod, not started through the launch door, that have a device file open:
 * whoever holds a chip behind the scheduler's back. Looked for once a minute on a live machine, in small
 * steps. Known daemons of vendors are no news. Without the right to look (another PID namespace) nothing is
 * found. */
#pragma once

#include "base/err.h"
#include "base/text.h"

struct agent;
struct foreign;

int foreign_new(struct agent *agent, struct foreign **ret, struct err *err);
void foreign_free(struct foreign *foreign); /* accepts NULL */
void foreign_metrics(const struct foreign *foreign, struct text *page);
