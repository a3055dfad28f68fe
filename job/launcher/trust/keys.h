/* Keys: the files with which the rendezvous speaks TLS (ADR 0050).
 *
 * A job without keys speaks plainly. One with keys speaks nothing else. A manager's certificate is made for
 * both sides (serverAuth, clientAuth: mpirun's start agents call with it), a group's for clients alone. */
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "io/tls/tls.h"

#define KEYS_STATUS_NAME "status.remuda.dev"

struct keys {
        const char *certificate, *key, *ca; /* files, PEM; all or none */
        const char *name;                   /* that the manager's certificate has; NULL = its address */
        const char *group_name;             /* of a manager: that groups' certificates have; NULL = any */
        const char *status; /* of a manager: a folder with another pair (tls.crt, tls.key), for peers without
                               a certificate that ask for the server KEYS_STATUS_NAME; NULL = none */
};

/* keys_open() - read and judge the files.
 * @address: the manager's, "ADDR:PORT"
 * @manager: this side serves
 * @ret: NULL for a job without keys; released with tls_free()
 * Return: 0; -ENOENT, -EACCES (a file); -EINVAL (not all given, no pair, not of the CA, not valid now, not of
 * this name, not for this side). */
int keys_open(const struct keys *keys, const char *address, bool manager, struct tls **ret, struct err *err);
