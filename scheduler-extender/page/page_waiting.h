/* Page waiting: what GET /v1/waiting says: every pod that waits, the oldest first, and of the oldest why,
 * what would help, and when they start if nothing changes. Worked out by a child (page_answers.h) with the
 * code of GET /v1/explain; remedies are tried as long as there is time for them. docs/reference/page.md has
 * the fields. */
#pragma once

#include "base/text.h"
#include "scheduler-extender/ledger/cluster.h"

#define PAGE_WAITING_PODS_MAX      100
#define PAGE_WAITING_REMEDIES_USEC UINT64_C(4000000) /* that remedies are tried for */
#define PAGE_WAITING_REASONS_USEC  UINT64_C(8000000) /* after this no further pod is shown */

/* page_waiting_write() - the whole answer. The ledger is changed while remedies are tried, and as before when
 * the call returns. @now_usec: clock_steady_usec(); @at_usec: CLOCK_REALTIME */
void page_waiting_write(struct cluster *cluster, uint64_t now_usec, uint64_t at_usec, struct text *ret);
