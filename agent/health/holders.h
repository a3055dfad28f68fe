/* Holders: which devices a process holds open, and whether somebody answers for it. From procfs alone; what
 * may not be read says nothing. */
#pragma once

#include <stdbool.h>

#include "agent/inventory/inventory.h"

typedef void (*holders_found)(void *userdata, const struct device *device);

/* holders_look() - calls found() once for each device whose own file the process holds; a file that several
 * devices share is everybody's. @proc: "/proc" but in tests; @pid: its folder there */
void holders_look(const char *proc, const char *pid, const struct inventory *published, holders_found found,
                  void *userdata);

/* holders_accounted() - a known daemon, in a pod (the kubelet's business), or started with REMUDA_DEVICES
 * (ours); also one that has ended meanwhile. */
bool holders_accounted(const char *proc, const char *pid);
