/* Stale socket: the file of a UNIX socket whose program died before it could take it away. */
#pragma once

#include <stdbool.h>

/* stale_socket_is() - is @path a socket on which nobody listens any more? Does not wait. */
bool stale_socket_is(const char *path);

/* stale_socket_sweep() - remove those of @directory whose names begin with @prefix; what else is there, and
 * what still answers, stays. */
void stale_socket_sweep(const char *directory, const char *prefix);
