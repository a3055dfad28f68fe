/* Deep: asks the vendors' libraries, each in a child process of its own, and remembers the answers.
 *
 * The agent never waits: a question is a byte into a pipe, the answer comes through the loop. A child that
 * does not answer within the deadline is killed and replaced; one that crashes is replaced after a pause; of
 * those that the kernel will not let die two are left behind, then the vendor is asked no more until one is
 * gone. A library that is not there is no error, and looked for again every five minutes.
 *
 * Of direct links (NVLink) a library is asked after its first answer and from then on every sixth time, with
 * four times the deadline, for some are slow at it. One that hangs or dies over that question is not asked it
 * again for ten minutes: its figures do not suffer. */
#pragma once

#include <stdint.h>

#include "agent/health/judge.h"
#include "agent/inventory/link_report.h"
#include "agent/probe/probe_sample.h"
#include "base/err.h"

struct agent;
struct deep;

int deep_new(struct agent *agent, struct deep **ret, struct err *err);
void deep_free(struct deep *deep); /* accepts NULL; kills every child */

/* deep_update() - the vendors on this node are those of this inventory. */
void deep_update(struct deep *deep, const struct inventory *inventory);

/* deep_configure() - the configuration was read again. */
void deep_configure(struct deep *deep);

/* deep_look() - add to `finding` what the library makes of the device, or that it is silent. */
void deep_look(const struct deep *deep, const struct device *device, struct finding *finding);

/* deep_sample() - the last answer about a device; NULL when there is none that is fresh. */
const struct probe_sample *deep_sample(const struct deep *deep, const struct device *device);

/* deep_links() - what is believed of direct links; NULL for a NULL deep. */
const struct link_reports *deep_links(const struct deep *deep);

enum deep_state { DEEP_ABSENT, DEEP_STARTING, DEEP_ANSWERS, DEEP_SILENT, DEEP_STATE_COUNT };
const char *deep_state_name(enum deep_state state);

struct deep_status {
        const char *vendor;
        enum deep_state state;
        uint64_t samples_total, timeouts_total, crashes_total, refused_total;
        unsigned abandoned;
        uint64_t last_success_usec; /* CLOCK_REALTIME; 0 = never */
        const struct histogram *duration;
};

/* deep_status() - of the i-th vendor. Return: false past the last. */
bool deep_status(const struct deep *deep, size_t i, struct deep_status *ret);
