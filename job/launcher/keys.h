/* Keys: the files with which the rendezvous speaks TLS (ADR 0050).
 *
 * A job without keys speaks plainly. One with keys speaks nothing else. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "io/tls/tls.h"

#define KEYS_STATUS_NAME "status.remuda.dev"

struct keys {
        const char *certificate, *key, *ca; /* files, PEM; all or none */
        const char *name;                   /* that the manager's certificate has; NULL = its address */
        const char *status; /* of a manager: a folder with keys of another CA (tls.crt, tls.key, ca.crt), for
                               peers that ask for the server KEYS_STATUS_NAME; NULL = none */
};

/* keys_open() - read and judge the files.
 * @address: the manager's, "ADDR:PORT"
 * @manager: this side serves
 * @ret: NULL for a job without keys; released with tls_free()
 * Return: 0; -ENOENT, -EACCES (a file); -EINVAL (not all given, no pair, not of the CA, not valid now, not of
 * this name). */
int keys_open(const struct keys *keys, const char *address, bool manager, struct tls **ret, struct err *err);
