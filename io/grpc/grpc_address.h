/* gRPC address: from "unix:/path", "127.0.0.1:port" or "[::1]:port" (io/address.h) to a socket. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* grpc_address_connect(), grpc_address_listen() - non-blocking.
 * @ret_connecting: connect() will answer later
 * Return: the descriptor or a negative errno. */
int grpc_address_connect(const char *address, bool *ret_connecting, struct err *err);
int grpc_address_listen(const char *address, mode_t unix_mode, struct err *err);
