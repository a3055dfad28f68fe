/* CPU groups: the processors of a node as devices; on Sunway its core groups. */
#pragma once

#include "agent/discovery/scan.h"

/* cpu_scan() - Return: 0 or -ENOMEM. After hardware_read(). */
int cpu_scan(struct scan *scan, struct err *err);
