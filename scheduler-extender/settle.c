/* A bind that came to no clear end (the reply was lost, the API server went away) may have happened. Its
 * chips stay held on its node and the bind is repeated, which is always safe, until the pod itself tells:
 * bound there, bound elsewhere, gone, or another of that name. Giving the chips back sooner could book them
 * twice; waiting for the audit would leave them idle for minutes. */
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

static void settling_free(struct settling *s)
{
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

/* The pod, as long as its chips are held by our bind alone; NULL = the store has settled it. */
static struct ledger_pod *still_assumed(const struct settling *s)
{
        struct ledger_pod *pod =
                ledger_pods_find(cluster_ledger(s->extender->cluster), s->namespace_, s->name);

        return pod != NULL && strcmp(pod->uid, s->uid) == 0 && pod->assumed && pod->node != NULL &&
                               strcmp(pod->node->name, s->node) == 0
                       ? pod
                       : NULL;
}

static void try_again(void *userdata);

static void wait_a_while(struct settling *s)
{
        if (loop_after(s->extender->loop, s->wait_usec, try_again, s, &s->timer) < 0)
                settling_free(s); /* the audit is left */
        else
                s->wait_usec = 2 * s->wait_usec < LONGEST_USEC ? 2 * s->wait_usec : LONGEST_USEC;
}

static void written(void *userdata, int result, const char *sentence)
{
        struct settling *s = userdata;
        struct extender *x = s->extender;
        struct ledger_pod *pod = still_assumed(s);

        x->commits--;
        if (pod != NULL)
                pod->writing = false;
        if (result == -ECANCELED || pod == NULL) {
                settling_free(s);
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
        if (result != 0)
                ledger_pods_forget(cluster_ledger(x->cluster), pod);
        settling_free(s);
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

        s->timer = sd_event_source_disable_unref(s->timer);
        if (pod == NULL) {
                settling_free(s);
        } else if (pod->writing || leader_refuses(x->leader) != NULL) {
                wait_a_while(s);
        } else {
                pod->writing = true;
                x->commits++;
                store_bind(cluster_store(x->cluster), &binding, written, s);
        }
}

void settle_bind(struct extender *x, const struct store_binding *binding)
{
        struct settling *s = calloc(1, sizeof(*s));

        if (s == NULL)
                return; /* the audit is left */
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
        if (s->namespace_ == NULL || s->name == NULL || s->uid == NULL || s->node == NULL)
                settling_free(s);
        else
                wait_a_while(s);
}

void settle_close(struct extender *x)
{
        while (x->settling != NULL)
                settling_free(x->settling);
}
