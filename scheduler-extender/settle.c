/* A bind that came to no clear end (the reply was lost, the API server went away) may have happened. Its
 * chips stay held on its node and the bind is repeated, which is always safe, until the pod itself tells:
 * bound there, bound elsewhere, gone, or another of that name. Giving the chips back sooner could book them
 * twice; waiting for the audit would leave them idle for minutes. Who leads no longer repeats nothing:
 * another may have given the chips away, and who begins to lead reads the store anew. */
#include "scheduler-extender/settle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "io/loop.h"
#include "scheduler-extender/bind.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "store/leader.h"

#define FIRST_USEC   UINT64_C(500000)
#define LONGEST_USEC UINT64_C(30000000)

struct settling {
        struct extender *extender;
        char *namespace_, *name, *uid, *node;
        json_t *annotations;
        uint64_t wait_usec;
        sd_event_source *timer;
        struct settling *previous, *next; /* in extender->settling */
};

/* Its pod, whatever has become of it; NULL = it is gone. */
static struct ledger_pod *find_pod(const struct settling *s)
{
        struct ledger_pod *pod =
                ledger_pods_find(cluster_ledger(s->extender->cluster), s->namespace_, s->name);

        return pod != NULL && strcmp(pod->uid, s->uid) == 0 ? pod : NULL;
}

/* @ended: so has the extender, and its ledger with it. */
static void settling_free(struct settling *s, bool ended)
{
        struct ledger_pod *pod = ended ? NULL : find_pod(s);

        if (pod != NULL)
                pod->settling = false;
        if (s->previous != NULL)
                s->previous->next = s->next;
        else
                s->extender->settling = s->next;
        if (s->next != NULL)
                s->next->previous = s->previous;
        sd_event_source_disable_unref(s->timer);
        free(s->namespace_);
        free(s->name);
        free(s->uid);
        free(s->node);
        json_decref(s->annotations);
        free(s);
}

/* The pod, as long as its chips are held by our bind alone; NULL = the store has settled it, or it is no
 * longer ours to settle. */
static struct ledger_pod *still_assumed(const struct settling *s)
{
        struct ledger_pod *pod = find_pod(s);

        return pod != NULL && pod->settling && pod->assumed && pod->node != NULL &&
                               strcmp(pod->node->name, s->node) == 0
                       ? pod
                       : NULL;
}

static void wait_a_while(struct settling *s)
{
        loop_rearm(s->timer, s->wait_usec);
        s->wait_usec = 2 * s->wait_usec < LONGEST_USEC ? 2 * s->wait_usec : LONGEST_USEC;
}

static void written(void *userdata, int result, const char *sentence)
{
        struct settling *s = userdata;
        struct extender *x = s->extender;
        struct ledger_pod *pod = find_pod(s);

        x->commits--;
        if (pod != NULL)
                pod->writing = false;
        pod = still_assumed(s);
        if (result == -ECANCELED || pod == NULL) {
                settling_free(s, false);
                return;
        }
        if (result != 0 && !bind_certainly_failed(x, result)) {
                wait_a_while(s);
                return;
        }
        extender_log(x, LOG_INFO, "bind-settled", "pod=%s/%s node=%s bound=%s%s%s%s", s->namespace_, s->name,
                     s->node, result == 0 ? "yes" : "no", result == 0 ? "" : " error=\"",
                     result == 0 ? "" : sentence, result == 0 ? "" : "\"");
        x->metrics.binds_settled[result == 0]++;
        if (result == 0)
                pod->done = true;
        else
                ledger_pods_forget(cluster_ledger(x->cluster), pod);
        settling_free(s, false);
}

static void try_again(void *userdata)
{
        struct settling *s = userdata;
        struct extender *x = s->extender;
        struct ledger_pod *pod = still_assumed(s);
        struct store_binding binding = { .namespace_ = s->namespace_,
                                         .name = s->name,
                                         .uid = s->uid,
                                         .node = s->node,
                                         .annotations = s->annotations };

        if (pod == NULL) {
                settling_free(s, false);
        } else if (pod->writing) {
                wait_a_while(s);
        } else {
                pod->writing = true;
                x->commits++;
                store_bind(cluster_store(x->cluster), &binding, written, s);
        }
}

static void begin(struct settling *s)
{
        struct ledger_pod *pod = find_pod(s);

        if (pod != NULL)
                pod->settling = true;
        wait_a_while(s);
}

void settle_bind(struct extender *x, const struct store_binding *binding)
{
        struct settling *s = calloc(1, sizeof(*s));

        if (s == NULL || leader_refuses(x->leader) != NULL) { /* who leads reads anew */
                free(s);
                return; /* the audit is left */
        }
        s->extender = x;
        s->next = x->settling;
        if (s->next != NULL)
                s->next->previous = s;
        x->settling = s;
        s->namespace_ = strdup(binding->namespace_);
        s->name = strdup(binding->name);
        s->uid = strdup(binding->uid);
        s->node = strdup(binding->node);
        s->annotations = json_incref((json_t *) binding->annotations);
        s->wait_usec = FIRST_USEC;
        if (s->namespace_ == NULL || s->name == NULL || s->uid == NULL || s->node == NULL ||
            loop_timer(x->loop, try_again, s, &s->timer) < 0)
                settling_free(s, true); /* the audit is left */
        else
                begin(s);
}

void settle_abandon(struct extender *x)
{
        for (struct settling *s = x->settling; s != NULL; s = s->next) {
                struct ledger_pod *pod = find_pod(s);

                if (pod != NULL)
                        pod->settling = false; /* its next try ends it */
        }
}

void settle_close(struct extender *x)
{
        while (x->settling != NULL)
                settling_free(x->settling, true);
}
