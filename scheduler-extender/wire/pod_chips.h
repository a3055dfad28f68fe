/* Chips of a pod: how many of each extended resource its containers ask for, counted as Kubernetes counts
 * (see pod_json.h, whose part this is). */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/json/json_field.h"
#include "scheduler-extender/decide/request.h"
#include "scheduler-extender/ledger/symbols.h"

/* pod_chips_decode() - @spec: the pod's; items are appended to @ask, those of no chips left out.
 * @add: see pod_chips_symbol()
 * Return: 0; -EBADMSG and which container's field is wrong. */
int pod_chips_decode(const struct json_field *spec, struct symbols *symbols, bool add,
                     struct request *request, struct err *err);

/* pod_chips_read() - the count of `name` in a list of resources. Return: 0; -EBADMSG for what is no count. */
int pod_chips_read(const struct json_field *list, const char *name, int64_t *ret, struct err *err);

/* pod_chips_symbol() - @add: a name that is new is kept, but half of all symbols are for what inventories
 * say: pods cannot use them up. */
uint32_t pod_chips_symbol(struct symbols *symbols, const char *name, bool add);

/* pod_chips_extended() - a name with a domain that is not Kubernetes' own. */
bool pod_chips_extended(const char *name);
