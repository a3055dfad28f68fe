/* In pods: what remuda-launch needs where a controller makes the containers: to get into an image that has
 * never heard of it, and to learn the manager's address, which is not known when the pod is made. */
#pragma once

#include <stdint.h>

#include "base/err.h"

#define IN_PODS_ADDRESS_BYTES 128

/* in_pods_copy() - this very program as an executable file at @path, by rename. 0 or a negative errno. */
int in_pods_copy(const char *path, struct err *err);

/* in_pods_read() - what a file says of the manager: "WORLD ADDRESS:PORT", or "end" when there is nothing to
 * join any more. It may change at any time, by rename or in place. Return: 0; 1 = "end"; -EAGAIN while it is
 * empty or not there; -EINVAL (its content is something else). */
int in_pods_read(const char *path, uint64_t *ret_world, char ret_address[IN_PODS_ADDRESS_BYTES],
                 struct err *err);
