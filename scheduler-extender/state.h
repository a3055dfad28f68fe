/* State of an extender, shared by the files of this folder and by nobody else. */
#pragma once

#include "base/metrics.h"
#include "base/name_map.h"
#include "io/http/http_server.h"
#include "job/controller/controller.h"
#include "scheduler-extender/extender.h"
#include "scheduler-extender/ledger/cluster.h"
#include "scheduler-extender/wire/extender_args.h"

#define EXTENDER_LIST_MAX 64

enum verb { VERB_FILTER, VERB_PRIORITIZE, VERB_BIND, VERB_EXPLAIN, VERB_WHATIF, VERB_COUNT };

/* What the configuration file and the comma lists of the command line say. Owns its strings. */
struct settings {
        char *emergency_namespaces[EXTENDER_LIST_MAX], *emergency_classes[EXTENDER_LIST_MAX];
        char *managed_resources[EXTENDER_LIST_MAX];
        size_t emergency_namespace_count, emergency_class_count, managed_resource_count;
        struct program_table programs;
        struct rules rules;
};

struct leader;

struct leader_watch {
        void (*changed)(void *userdata, bool leading);
        void *userdata;
};

struct extender {
        sd_event *loop;
        const struct extender_options *options;
        struct settings settings;
        struct cluster *cluster;
        struct http_server *server;
        struct controller *jobs; /* NULL: TrainingJobs are not carried out here */
        sd_event_source *every_second, *after_change;
        struct leader *leader; /* NULL: alone by order */
        struct leader_watch leader_watches[LEADER_WATCHES_MAX];
        size_t leader_watch_count;
        unsigned commits;          /* binds and evictions being written */
        struct settling *settling; /* binds of no clear end */
        char refusal[200];         /* see leader_refuses() */
        uint64_t audited_usec;     /* when the store was last read anew (monotonic); 0 = never */
        bool auditing;
        struct name_map labels; /* what Node objects have: see labels.c */
        bool was_ready;
        uint64_t thought_usec; /* when holds and evictions were last worked out (monotonic) */
        uint64_t thought_generation;
        uint64_t woken_usec; /* when waiting pods were last woken */
        uint64_t departures_seen;
        const char *wake_why; /* they are to be woken again; or NULL */
        int backfills;

        struct {
                struct histogram seconds[VERB_COUNT];
                uint64_t requests[VERB_COUNT][2]; /* [1] = refused */
                uint64_t rejected[REASON_COUNT];
                uint64_t leases_made, leases_expired, binds, bind_failures, binds_settled[2], evictions;
                uint64_t audits, drifts, wakes;
        } metrics;
};

/* settings.c */
int settings_read(const struct extender_options *options, struct settings *ret, struct err *err);
void settings_free(struct settings *settings);

/* extender.c */
void extender_log(struct extender *extender, int priority, const char *event, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
uint64_t extender_now(const struct extender *extender); /* CLOCK_REALTIME, microseconds */

/* extender_begin() - the beginning of a verb: its start time. extender_end() - counts it. */
uint64_t extender_begin(void);
void extender_end(struct extender *extender, enum verb verb, uint64_t begin_usec, bool refused);

/* extender_refuses() - the sentence with which filter and bind are to be refused now, or NULL. */
const char *extender_refuses(struct extender *extender);

/* leader.c: leader_refuses() - why this replica may not commit now, or NULL; borrowed until the next call.
 * leader_look() - once a second; leader_refreshed() - the store was read anew. */
/* leader_commit_usec() - a commit that began while leading ends within */
uint64_t leader_commit_usec(const struct extender *extender);
int leader_open(struct extender *extender, struct err *err);     /* before the store is opened */
int leader_campaign(struct extender *extender, struct err *err); /* once the address is known */
void leader_close(struct extender *extender);
const char *leader_refuses(struct extender *extender);
const char *extender_leader_holder(const struct extender *extender); /* "" = not known */
void leader_look(struct extender *extender);
void leader_refreshed(struct extender *extender);

/* bind.c: did a bind with this result certainly not happen? If not, its chips stay held until it is settled.
 */
bool bind_certainly_failed(const struct extender *extender, int result);

/* settle.c: repeat a bind of no clear end until the pod itself tells. settle_close() - forget them all. */
void settle_bind(struct extender *extender, const struct store_binding *binding);
void settle_close(struct extender *extender);

/* reserve.c: borrowers of the reserve are evicted for emergencies that do not fit. Holds for these are added.
 */
void reserve_update(struct extender *extender, uint64_t now_usec);

/* reserve_evict() - this borrower has to go, within the grace time. */
void reserve_evict(struct extender *extender, const struct ledger_pod *pod);

/* jobs.c: the job controller. 0, or what controller_new() says. */
int jobs_open(struct extender *extender, struct err *err);

/* wake.c: an event that kube-scheduler requeues waiting pods on. */
void wake_waiting(struct extender *extender, const char *node, const char *why); /* `why` is a constant */
void wake_late(struct extender *extender); /* once a second: what wake_waiting() put off */

/* labels.c: the node's labels, from its inventory. labels_seen() - what the Node object has (NULL: it is
 * gone); labels_write() - patch what differs, if this replica leads. */
void labels_seen(struct extender *extender, const char *node, const json_t *labels);
void labels_write(struct extender *extender, const char *node);
void labels_write_all(struct extender *extender);
void labels_free(struct extender *extender);

/* nodes_request.c: a message about nodes, answered by `answer` (0 with a reply; -ENOMEM; -EBADMSG or -E2BIG
 * with a sentence) or refused with a 4xx. */
typedef int nodes_answer_fn(struct extender *extender, struct extender_args *args, struct http_reply *reply,
                            struct err *err);
void nodes_request(struct extender *extender, enum verb verb, const struct http_request *request,
                   struct http_reply *reply, nodes_answer_fn *answer);

void filter_handler(void *userdata, const struct http_request *request, struct http_reply *reply);
void prioritize_handler(void *userdata, const struct http_request *request, struct http_reply *reply);
void bind_handler(void *userdata, const struct http_request *request, struct http_reply *reply);
void explain_handler(void *userdata, const struct http_request *request, struct http_reply *reply);
void whatif_handler(void *userdata, const struct http_request *request, struct http_reply *reply);
void metrics_handler(void *userdata, const struct http_request *request, struct http_reply *reply);
