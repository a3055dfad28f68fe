/* Chips of a pod: how many of each extended resource its containers ask for, counted as Kubernetes counts
 * (see pod_json.h, whose part this is). */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "base/json/json_field.h"
#include "scheduler-extender/decide/request.h"
#include "scheduler-extender/ledger/ledger.h"

/* pod_chips_decode() - @spec: the pod's; items are appended to @request, those of no chips left out. Of more
 * resources than a request holds the chips stay, and request->more is set; more of one than
 * REQUEST_CHIPS_MAX, or a count that cannot be read, is REQUEST_CHIPS_MAX; where not even the containers can
 * be read request->unreadable is set.
 * @add: see pod_chips_symbol()
 * Return: 0; -EBADMSG and what is wrong with its chips (not with resources that are none; with @add also
 * that there was no room for what may be chips): what is there stands. */
int pod_chips_decode(const struct json_field *spec, struct ledger *ledger, bool add, struct request *request,
                     struct err *err);

/* pod_chips_read() - a count of chips. Return: 0; -EBADMSG: beyond 0..REQUEST_CHIPS_MAX (*ret is the nearer
 * end), or no count (*ret is untouched). */
int pod_chips_read(const struct json_field *at, uint32_t *ret, struct err *err);

/* pod_chips_symbol() - @add: a name that is new is kept, but half of all symbols are for what inventories
 * say: pods cannot use them up. */
uint32_t pod_chips_symbol(struct symbols *symbols, const char *name, bool add);

/* pod_chips_extended() - a name with a domain that is not Kubernetes' own. */
bool pod_chips_extended(const char *name);

/* pod_chips_is_sidecar() - an init container that stays. */
bool pod_chips_is_sidecar(const struct json_field *container);
