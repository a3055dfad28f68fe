/* Vendor probe: asks the vendors' libraries, each in a child process of its own, and remembers the answers.
 *
 * The agent never waits: a request is a byte into a pipe, the answer comes through the loop. A child that
 * does not answer within the deadline is killed and replaced; one that crashes is replaced after a pause; of
 * those that the kernel will not let die two are left behind, then the vendor is asked no more until one is
 * gone. A library that is not there is no error, and looked for again every five minutes.
 *
 * Of direct links (NVLink) a library is asked after its first answer and from then on every sixth time, with
 * four times the deadline, for some are slow at it. One that hangs or dies over that request is not sent it
 * again for ten minutes: its figures do not suffer. */
#pragma once

#include <stdint.h>

#include "agent/config/services.h"
#include "agent/inventory/agent_facts.h"
#include "agent/inventory/link_report.h"
#include "agent/probe/probe_sample.h"
#include "base/err.h"

struct vendor_probe;

/* vendor_probe_new() - @services: borrowed for its life
 * @this_machine: the libraries of the machine that we run on know of the devices; else only a library that
 * the configuration names is asked
 * @links_directory: see link_memory.h */
int vendor_probe_new(const struct services *services, bool this_machine, const char *links_directory,
                     struct vendor_probe **ret, struct err *err);
void vendor_probe_free(struct vendor_probe *probe); /* accepts NULL; kills every child */

/* vendor_probe_update() - the vendors on this node are those of this inventory. Nothing without a probe. */
void vendor_probe_update(struct vendor_probe *probe, const struct inventory *inventory);

/* vendor_probe_configure() - the configuration was read again. */
void vendor_probe_configure(struct vendor_probe *probe);

/* vendor_probe_look() - add to `finding` what the library makes of the device, or that it is silent. */
void vendor_probe_look(const struct vendor_probe *probe, const struct device *device,
                       struct finding *finding);

/* vendor_probe_sample() - the last answer about a device; NULL when there is none that is fresh. */
const struct probe_sample *vendor_probe_sample(const struct vendor_probe *probe, const struct device *device);

/* vendor_probe_links() - what is believed of direct links; NULL for a NULL probe. */
const struct link_report_list *vendor_probe_links(const struct vendor_probe *probe);

struct vendor_probe_status {
        const char *vendor; /* NULL = no device of it is here */
        bool asked;         /* its library is; whatever follows says nothing otherwise */
        enum agent_facts_state state;
        const char *why; /* it is silent */
        uint64_t samples_total, timeouts_total, crashes_total, refused_total;
        uint64_t last_success_usec; /* CLOCK_REALTIME; 0 = never */
        const struct histogram *duration;
};

/* vendor_probe_status() - of the i-th vendor. Return: false past the last. */
bool vendor_probe_status(const struct vendor_probe *probe, size_t i, struct vendor_probe_status *ret);
