/* Given devices: the kinds of devices that a request is about, from the command line ("H100-SXM*8",
 * "mychip=120,32*4") or from machine files. */
#pragma once

#include "base/options.h"
#include "planner/models/network_estimate.h"

#define GIVEN_DEVICES_MAX 64

/* given_devices_collect() - @given: each NAME[=TFLOPS[,GIB]][*N]; a name alone has its peak from the device
 * table
 * @machines: a file of NodeAccelerators, or NULL
 * @devices: GIVEN_DEVICES_MAX entries
 * Return: 0 or a negative errno; *err says which. */
int given_devices_collect(const struct option_list *given, const char *machines,
                          struct network_estimate_device *devices, size_t *ret_count, struct err *err);
