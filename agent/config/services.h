/* Services: what the daemon lends to each part of the agent, and how a part speaks back. A part keeps the
 * pointer and none of the state behind it; the daemon (agent/agent.c) owns all of it and outlives every part.
 */
#pragma once

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "agent/config/agent_config.h"
#include "agent/inventory/holder.h"
#include "agent/inventory/inventory.h"
#include "io/log.h"

struct services {
        sd_event *loop;
        struct log *log;
        const struct agent_config *config; /* as it is now: it may be read again */
        const struct inventory *published; /* what was published last */

        /* Look at the machine again: something is new. */
        void (*scan)(void *userdata, const char *why);
        /* An event of the node, or of a device (NULL = none). */
        void (*event)(void *userdata, const char *type, const char *reason, const char *device,
                      const char *sentence);
        /* Who holds what: the last answer, sorted by device id and borrowed until the loop turns. NULL =
         * nobody is asked.
         * @ret_asked_usec: CLOCK_MONOTONIC of the answer, 0 = there was none yet; may be NULL */
        size_t (*holders)(void *userdata, const struct holder **ret, uint64_t *ret_asked_usec);
        /* Ask for it anew, somebody waits. */
        void (*ask_holders)(void *userdata);
        /* Does the kubelet offer what was published last, and is known who holds what? NULL = it is not
         * asked. */
        bool (*serves)(void *userdata);
        void *userdata;
};

/* services_event() - with a formatted sentence. @type: "Normal" or "Warning"; @reason: CamelCase literal */
void services_event(const struct services *services, const char *type, const char *reason, const char *device,
                    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static inline void services_scan(const struct services *services, const char *why)
{
        services->scan(services->userdata, why);
}

/* services_is_held() - does a pod hold the device? @pod_namespace, @pod: NULL = any */
bool services_is_held(const struct services *services, const char *device_id, const char *pod_namespace,
                      const char *pod);
