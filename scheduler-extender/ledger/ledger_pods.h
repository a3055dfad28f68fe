/* Ledger, its pods: on a node or pending, as the store says, ahead of it where we have bound one ourselves.
 *
 * What was decided stands: while a pod is on a node its job, its request and its parts are those with which
 * it came there, whatever labels and annotations say later. Its chips are given back when it is gone, has
 * ended or is another one (its uid), never because something of it cannot be read or was changed. Pure but
 * for the heap; a look-up O(1), a change O(pods on the node). */
#pragma once

#include "scheduler-extender/claims/claims_lost.h"
#include "scheduler-extender/ledger/ledger.h"

#define LEDGER_POD_PARTS_MAX   8 /* groups that one pod's chips may be recorded in */
#define LEDGER_POD_GROUP_BYTES 640

struct ledger_pod_part {
        uint32_t group; /* symbol */
        uint32_t chips;
};

struct ledger_pod {
        struct ledger_node *node; /* NULL = pending */
        struct ledger_pod *next_on_node;
        struct ledger_pod *next_pending, *previous_pending; /* while node == NULL */
        struct ledger_job *job;                             /* NULL = of no job */
        struct ledger_pod *next_in_job;
        struct request request;
        struct ledger_pod_part
                parts[LEDGER_POD_PARTS_MAX]; /* recorded by our own bind; part_count 0 = bound by others */
        uint8_t part_count;
        bool in_parts;   /* its parts stand in the node's account (ledger_account.h) */
        bool borrowed;   /* came to a reserved node without an emergency's right */
        bool saves;      /* it says that it keeps its work when it is asked to end */
        bool assumed;    /* bound by us, not confirmed by the store yet */
        bool writing;    /* ... and the write is under way */
        bool done;       /* ... or was said to be done: the store will show it */
        bool settling;   /* ... or its unclear end is being settled: see settle.h */
        bool deleting;   /* has a deletion timestamp: counts until it is gone */
        bool ended;      /* Succeeded or Failed: holds nothing */
        bool claimed;    /* its claims have chips: they are held, and neither leased nor its own, too */
        bool has_claims; /* it names some */
        uint8_t counted_as : 7;     /* of its job: a bit for each enum ledger_jobs_members */
        uint8_t counted_ending : 1; /* ... and of its node: one that says when it ends */
        bool pass_answered;         /* this and the next: scheduler-extender/groups/group_pass.h */
        uint32_t pass_node;         /* its index + 1; 0 = none */
        uint64_t waited_usec; /* since when it has a reservation (backfill.h), until it is bound; 0 = none */
        bool served;          /* an emergency: its holds are where it will start, once others are gone */
        bool unhelped;        /* an emergency: nothing helped it when it was looked at last */
        uint32_t served_on;   /* ... where it was to start then: the node's index + 1; 0 = nowhere */
        struct claims_lost_watch lost; /* since when it cannot begin */
        uint64_t evicted_usec;         /* when it was last asked to go for an emergency; 0 = never */
        uint64_t spared_usec;          /* when that was refused, by a disruption budget; 0 = never */
        char *spared_why;              /* ... in the API server's words; owned */
        char *nominated; /* where its scheduler says that it will go; NULL = it says nothing; owned */
        uint64_t created_usec, started_usec, ended_usec; /* CLOCK_REALTIME; 0 = not known */
        uint64_t deletion_usec; /* likewise: when it is gone at the latest, as the kubelet ends it */
        double weight;          /* recorded share; 0 = none */
        uint32_t batch_share;
        struct request_member *kinds; /* the members its gang lists; owned */
        uint8_t kind_count;
        uint32_t labels;              /* number in ledger.neighbours; 0 = none are known, or it has ended */
        const char *uid, *key, *name; /* key "namespace/name"; name points into key */
        char text[];
};

/* What a pod object says. Borrowed. */
struct ledger_pod_facts {
        const char *namespace_, *name, *uid;
        const char *node;                   /* NULL or "" = not bound */
        const char *nominated;              /* status.nominatedNodeName; NULL = none */
        const char *job;                    /* label remuda.dev/job, or its group; NULL = none */
        char group[LEDGER_POD_GROUP_BYTES]; /* where `job` points then */
        const char *node_match; /* lines of scheduler-extender/decide/node_match.h; NULL = not known, or of no
                                   interest any more */
        const char *labels, *demands; /* lines of scheduler-extender/neighbours/neighbours.h; NULL = none */
        struct request request;
        struct ledger_pod_part parts[LEDGER_POD_PARTS_MAX];
        uint8_t part_count;
        bool borrowed; /* as its bind recorded */
        bool saves, has_claims;
        bool ended, deleting;
        uint64_t created_usec, started_usec, ended_usec, deletion_usec;
        double weight;
        uint32_t batch_share;
        struct request_member kinds[REQUEST_KINDS_MAX];
        uint8_t kind_count;
};

struct ledger_pod *ledger_pods_find(const struct ledger *ledger, const char *namespace_, const char *name);

/* ledger_pods_set() - the pod is new or changed. A bind of ours that the object does not show yet stands. A
 * pod of the same name with another uid replaces it. 0 or -ENOMEM. */
int ledger_pods_set(struct ledger *ledger, const struct ledger_pod_facts *facts);
void ledger_pods_drop(struct ledger *ledger, const char *namespace_, const char *name);

/* ledger_pods_assume() - the pod is being bound to `node` by us, in these parts; one slot of its gang's lease
 * is given up. ledger_pods_forget() takes it back (the slot is lost). 0 or -ENOMEM. */
int ledger_pods_assume(struct ledger *ledger, struct ledger_pod *pod, struct ledger_node *node,
                       const struct ledger_pod_part *parts, size_t part_count);
void ledger_pods_forget(struct ledger *ledger, struct ledger_pod *pod);

/* ledger_pods_drop_reservations() - none is kept for the pod any more: O(nodes). */
void ledger_pods_drop_reservations(struct ledger *ledger, const struct ledger_pod *pod);
void ledger_pods_drop_reservations_on(struct ledger *ledger, const struct ledger_pod *pod,
                                      struct ledger_node *node);

/* ledger_pods_compare() - < 0: `a` is older; of one age, by name. */
int ledger_pods_compare(const struct ledger_pod *a, const struct ledger_pod *b);

/* ledger_pods_is_of() - is the pod in this namespace? */
bool ledger_pods_is_of(const struct ledger_pod *pod, const char *namespace_);

/* ledger_pods_same_namespace() - of two keys "namespace/name", of pods or jobs. */
bool ledger_pods_same_namespace(const char *a, const char *b);

/* ledger_pods_borrows() - does it sit on reserved chips without an emergency's right? */
static inline bool ledger_pods_borrows(const struct ledger_pod *pod)
{
        return pod->node != NULL && pod->node->reserved && (pod->borrowed || !pod->request.emergency);
}

/* ledger_pods_has_claimed() - are its chips counted by its claims, wherever it is?
 * ledger_pods_waits() - does it wait to be placed now? Others of a gang are planned, and not leased. */
static inline bool ledger_pods_has_claimed(const struct ledger_pod *pod)
{
        return pod->request.by_claims && pod->claimed;
}

static inline bool ledger_pods_waits(const struct ledger_pod *pod)
{
        return pod->node == NULL && !pod->ended && !pod->deleting && !request_is_held_back(&pod->request) &&
               pod->request.item_count > 0 && !ledger_pods_has_claimed(pod);
}

/* Who may be asked to go for an emergency. */
enum ledger_pods_takes {
        LEDGER_PODS_TAKES_NOBODY,
        LEDGER_PODS_TAKES_BORROWERS,   /* of the reserve */
        LEDGER_PODS_TAKES_PREEMPTIBLE, /* ... and of regular nodes preemptible pods that are no emergencies */
        LEDGER_PODS_TAKES_ANYBODY
};
bool ledger_pods_gives_way(const struct ledger_pod *pod, enum ledger_pods_takes takes);

/* ledger_pods_detach(), ledger_pods_attach() - take a bound pod off its node and put it back: for "what if it
 * went". It does not wait meanwhile; ledger_pods_wait() - it does, as before it was attached. */
void ledger_pods_detach(struct ledger *ledger, struct ledger_pod *pod);
void ledger_pods_attach(struct ledger *ledger, struct ledger_pod *pod, struct ledger_node *node);
void ledger_pods_wait(struct ledger *ledger, struct ledger_pod *pod);

void ledger_pods_free_one(struct ledger_pod *pod); /* in no list any more */
