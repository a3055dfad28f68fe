/* Write all: bytes that have to reach a descriptor whole. */
#pragma once

#include <stddef.h>

/* write_all() - a write that ends early or is interrupted goes on. Blocks as long as `fd` does.
 * Return: 0, or a negative errno; a part may have been written then. */
int write_all(int fd, const char *bytes, size_t size_bytes);
