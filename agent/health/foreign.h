/* Foreign: processes outside any pod, not started through the launch API, that have a device file open:
 * whoever holds a chip behind the scheduler's back. Looked for once a minute on a live machine, in small
 * steps. Known daemons of vendors are no news. Without the right to look (another PID namespace) nothing is
 * found. */
#pragma once

#include "agent/config/services.h"
#include "base/err.h"
#include "base/text.h"

struct foreign;

/* foreign_new() - @live: it is this machine that is looked at; else nobody is looked for */
int foreign_new(const struct services *services, bool live, struct foreign **ret, struct err *err);
void foreign_free(struct foreign *foreign); /* accepts NULL */
void foreign_metrics(const struct foreign *foreign, struct text *page);
