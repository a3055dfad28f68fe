/* A job controller on a store in memory, for the tests of what it does with what it sees: a node "a" of eight
 * H100, jobs and pods as a test writes them. The kubelet is the test. */
#pragma once

#include "base/text.h"
#include "io/clock.h"
#include "job/controller/controller.h"
#include "job/controller/controller_internal.h"
#include "tests/support/memory_store.h"
#include "tests/support/patience.h"

struct bed {
        sd_event *loop;
        struct cluster *cluster;
        struct memory_store *store;
        struct controller *controller;
        struct text said; /* what was logged, a line each */
        bool leads;
};

/* bed_begin() - @options: what of them differs; the rest is filled in. */
struct bed *bed_begin(struct controller_options options);
void bed_end(struct bed *b);

/* Runs the loop until it holds; a busy machine is waited for. */
#define BED_WAIT(b, what)                                                                                    \
        do {                                                                                                 \
                uint64_t end_ = clock_monotonic_usec() + patience_usec();                                    \
                while (!(what)) {                                                                            \
                        if (clock_monotonic_usec() > end_)                                                   \
                                fail_msg("never came: %s; said:\n%s", #what, (b)->said.data);                \
                        memory_store_tell((b)->store);                                                       \
                        (void) sd_event_run((b)->loop, 10000);                                               \
                }                                                                                            \
        } while (false)

/* bed_settle() - until nothing is left to be done. bed_look() - at the job once more, as after a while: what
 * was put off is due. */
void bed_settle(struct bed *b);
void bed_look(struct bed *b, const char *job);

bool bed_said(const struct bed *b, const char *words);

/* bed_put_node() - an inventory of one group of these chips. bed_put_job() - a TrainingJob of these fields,
 * "workers":..., beside its program. */
void bed_put_node(struct bed *b, const char *name, const char *model, unsigned chips);
void bed_put_job(struct bed *b, const char *name, const char *fields);
#define BED_TWO_CHIPS "\"workers\":[{\"model\":\"H100\",\"chips\":2}]"

/* bed_merge(), bed_text() - of "TrainingJob" or "Pod" of this name, see memory_store.h. bed_is_there() - is
 * the pod? */
void bed_merge(struct bed *b, const char *kind, const char *name, const char *json);
void bed_drop(struct bed *b, const char *kind, const char *name);
const char *bed_text(struct bed *b, const char *kind, const char *name, const char *path);
bool bed_is_there(struct bed *b, const char *pod);

/* bed_is() - is the job's phase this one, and the reason for it? NULL = whatever it is. */
bool bed_is(struct bed *b, const char *job, const char *phase, const char *reason);
struct record *bed_record(struct bed *b, const char *job);

/* What the kubelet says of a pod on node "a". */
#define BED_RUNS                                                                                             \
        "{\"spec\":{\"nodeName\":\"a\"},\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.7\","           \
        "\"containerStatuses\":[{\"name\":\"main\",\"state\":{\"running\":{}}}]}}"
#define BED_ENDED(PHASE, CODE, MESSAGE)                                                                      \
        "{\"spec\":{\"nodeName\":\"a\"},\"status\":{\"phase\":\"" PHASE                                      \
        "\",\"containerStatuses\":[{\"name\":\"side\"},{\"name\":\"main\",\"state\":{\"terminated\":{"       \
        "\"exitCode\":" CODE ",\"reason\":\"Error\",\"message\":\"" MESSAGE "\"}}}]}}"

/* bed_run_job() - bed_put_job(), and its two pods run, and so does it. */
void bed_run_job(struct bed *b, const char *name, const char *fields);
