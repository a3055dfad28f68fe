/* Extender bind: ExtenderBindingArgs of the scheduler extender protocol (v1). In memory only. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

struct extender_bind {
        json_t *json; /* owned; the strings live in it */
        const char *pod_name, *pod_namespace, *pod_uid, *node;
};

/* extender_bind_decode() - Return: 0; -EBADMSG (what and where). Release in any case. */
int extender_bind_decode(const char *body, size_t body_bytes, struct extender_bind *ret, struct err *err);
void extender_bind_free(struct extender_bind *args);
