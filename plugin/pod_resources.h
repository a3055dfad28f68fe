/* Pod resources: who holds which device, asked of the kubelet's pod-resources socket (v1 List).
 *
 * Polled gently (the kubelet allows 100 requests a second to everybody together): every period, and soon
 * after pod_resources_poke(). A failed request keeps the last answer and says how old it is: a partial truth
 * rather than none. Replicas ("id::k") are reported under the device's own id. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "agent/inventory/holder.h"
#include "agent/inventory/inventory.h"
#include "base/err.h"

#define POD_RESOURCES_SOCKET "/var/lib/kubelet/pod-resources/kubelet.sock"

struct pod_resources;

struct pod_resources_options {
        const char *socket;                 /* NULL = POD_RESOURCES_SOCKET; need not exist */
        uint64_t period_usec;               /* 0 = 10 s */
        void (*on_change)(void *userdata);  /* the holders changed; may be NULL, as the next */
        void (*on_trouble)(void *userdata); /* pod_resources_trouble() says something else */
        void *userdata;
};

int pod_resources_new(sd_event *loop, const struct pod_resources_options *options, struct pod_resources **ret,
                      struct err *err);
void pod_resources_free(struct pod_resources *pods); /* accepts NULL */

/* pod_resources_poke() - something was granted: ask within a second. pod_resources_request() - somebody waits
 * for the answer: ask at once, but no more than ten times a second. */
void pod_resources_poke(struct pod_resources *pods);
void pod_resources_request(struct pod_resources *pods);

/* pod_resources_holders() - the last known answer, sorted by device id. Borrowed until the loop turns.
 * @ret_asked_usec: CLOCK_MONOTONIC of that answer; 0 = never had one. May be NULL. */
size_t pod_resources_holders(const struct pod_resources *pods, const struct holder **ret,
                             uint64_t *ret_asked_usec);

/* pod_resources_count_free() - set `free` of every group: usable devices that nobody holds (for a shared
 * group: usable devices with at least one share left). */
void pod_resources_count_free(const struct pod_resources *pods, struct inventory *inventory);

/* pod_resources_trouble() - why the last request failed; "" when it did not. Borrowed. */
const char *pod_resources_trouble(const struct pod_resources *pods);
