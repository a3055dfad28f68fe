/* HTTP listen: from "127.0.0.1:8080", "[::1]:0" or "unix:/run/remuda/agent.sock" to a listening socket.
 *
 * Numeric addresses only (and "localhost"): a server that resolves names at start depends on a resolver. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

#define HTTP_ADDRESS_BYTES 128

struct http_listen {
        int fd;                           /* nonblocking, close-on-exec; owned by the caller */
        bool loopback;                    /* a UNIX socket counts as one */
        char address[HTTP_ADDRESS_BYTES]; /* as bound: the port is never 0 */
        char unix_path[108];              /* "" for TCP; removed by http_listen_remove() */
        dev_t unix_device;
        ino_t unix_inode;
};

/* http_listen_open() - bind and listen. A UNIX socket left behind by a dead server is replaced; a living
 * one's only with @take_over: then new callers come to us, at no moment to nobody. @unix_mode: 0 = 0660.
 * @loopback_only: refuse anything else. Return: 0; -EINVAL (no such form of address), -EACCES (not loopback),
 * -EADDRINUSE ... */
int http_listen_open(const char *address, mode_t unix_mode, bool loopback_only, bool take_over,
                     struct http_listen *ret, struct err *err);

/* http_listen_is_there() - is the file of the UNIX socket there, and this one's? True for TCP. */
bool http_listen_is_there(const struct http_listen *listen);

/* http_listen_remove() - the file of a UNIX socket, unless another server has taken its place. */
void http_listen_remove(const struct http_listen *listen);

/* http_listen_descriptors() - raise this process's soft limit of open files so that `wanted` more fit.
 * Return: how many may be used (less than wanted where the hard limit says so). */
unsigned http_listen_descriptors(unsigned wanted);
