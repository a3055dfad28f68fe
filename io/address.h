/* Address: "127.0.0.1:8080", "localhost:0", "[::1]:80", "[fe80::1%eth0]:80" or "unix:/run/x.sock" as a
 * socket's.
 *
 * Numeric (and "localhost"): a program that resolves names at its start depends on a resolver. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/err.h"

struct address {
        union {
                struct sockaddr any;
                struct sockaddr_un local;
                struct sockaddr_in in;
                struct sockaddr_in6 in6;
        } u;
        socklen_t size;
};

/* address_parse() - Return: 0; -EINVAL; -ENAMETOOLONG for the path of a socket. */
int address_parse(const char *text, struct address *ret, struct err *err);
bool address_is_loopback(const struct address *address); /* a UNIX socket counts as one */
