/* Groups: which devices are reported at all, in which order, and what they form. */
#pragma once

#include "agent/discovery/scan.h"

/* groups_sort() - the devices of each vendor in order of their index. */
int groups_sort(struct scan *scan, struct err *err);

/* groups_keep_out() - no two devices may bear one id, and the operator may keep devices out: they leave their
 * groups. */
void groups_keep_out(struct scan *scan);

/* groups_form() - from placements to groups, names and counts. */
int groups_form(struct scan *scan, struct err *err);
