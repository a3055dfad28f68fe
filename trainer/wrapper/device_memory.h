/* Device memory: gradients that the processor cannot reach, and an MPI that can.
 *
 * Whether this process can read an address is asked of the kernel, so that no vendor's library is needed and
 * memory that both reach (managed, pinned) counts as the host's. What is the device's is moved by MPI itself,
 * by sending it to oneself, where MPI was built for devices. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* device_memory_is() - can this process not read these bytes? */
bool device_memory_is(const void *at, size_t size_bytes);

/* device_memory_check() - can MPI move it? Return: 0, or -ENOTSUP saying what to do instead. */
int device_memory_check(struct err *err);

/* device_memory_copy() - one of the two is the device's. */
void device_memory_copy(void *to, const void *from, size_t size_bytes);
