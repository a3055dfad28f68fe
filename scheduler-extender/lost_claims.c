/* Nodes with claims of devices that nobody offers there, their pods, one eviction each. */
#include "scheduler-extender/lost_claims.h"

#include <errno.h>
#include <stdlib.h>
#include <syslog.h>

#include "base/text.h"
#include "scheduler-extender/claims/cluster_claims.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "store/leader.h"
#include "store/store_read.h"

#define GRACE_SEC 30 /* it has nothing to end; should it begin in this moment, it gets what a pod gets */

struct asked {
        struct extender *x;
        bool there; /* the claim is, and was not told yet */
        char key[512], uid[64], sentence[512];
};

static void on_evicted(void *userdata, int result, const char *sentence)
{
        struct asked *asked = userdata;
        struct extender *x = asked->x;

        x->commits--;
        if (result == 0) {
                x->metrics.claims_lost++;
                extender_event(x, STORE_POD, asked->key, "ClaimLost", asked->sentence);
        } else if (result != -ENOENT && result != -ECANCELED) /* it is asked again */
                extender_log(x, LOG_WARNING, "claim-lost", "pod=%s error=\"%s\"", asked->key, sentence);
        free(asked);
}

static void evict_pod(struct asked *asked)
{
        char namespace_[256];
        const char *name = store_key_split(asked->key, namespace_);

        store_evict(cluster_store(asked->x->cluster), namespace_, name, asked->uid, GRACE_SEC, on_evicted,
                    asked);
}

static void on_claim(void *userdata, const json_t *object)
{
        (void) object;
        ((struct asked *) userdata)->there = true;
}

/* What is told of claims may be behind what is told of pods: it goes for one that the store itself has not.
 */
static void on_claim_read(void *userdata, int result, const char *sentence)
{
        struct asked *asked = userdata;

        (void) sentence;
        if (result == -ENOENT && !asked->there) {
                evict_pod(asked);
                return;
        }
        asked->x->commits--;
        free(asked);
}

/* @device: of its claim, that its node does not offer; NULL = @claim is not there */
static void evict(struct extender *x, const struct ledger_pod *pod, const char *device, const char *claim)
{
        struct asked *asked = calloc(1, sizeof(*asked));
        char namespace_[256];
        const char *name;

        if (asked == NULL || !text_copy(asked->uid, sizeof(asked->uid), pod->uid)) {
                free(asked);
                return; /* in a while it is asked again */
        }
        asked->x = x;
        (void) text_copy(asked->key, sizeof(asked->key), pod->key);
        if (device != NULL)
                (void) text_format(
                        asked->sentence, sizeof(asked->sentence),
                        "its claim was allocated device %.63s, which node %.253s does not offer any more "
                        "(another pod has the chip, or it is sick), and it could not begin for %llu s: the "
                        "pod "
                        "is evicted, so that the claim is freed",
                        device, pod->node->name, (unsigned long long) (CLAIMS_LOST_USEC / 1000000));
        else
                (void) text_format(asked->sentence, sizeof(asked->sentence),
                                   "claim %.300s, which kube-scheduler made for its extended resources, is "
                                   "not there any "
                                   "more, and it could not begin for %llu s: the pod is evicted",
                                   claim, (unsigned long long) (CLAIMS_LOST_USEC / 1000000));
        extender_log(x, LOG_WARNING, "claim-lost", "pod=%s node=%s device=%s", pod->key, pod->node->name,
                     device != NULL ? device : "none");
        x->commits++;
        if (device != NULL) {
                evict_pod(asked);
                return;
        }
        name = store_key_split(claim, namespace_);
        store_read(cluster_store(x->cluster), STORE_RESOURCE_CLAIM, namespace_, name, on_claim, on_claim_read,
                   asked);
}

/* Without rights on claims, or while their watch is away, one that is not there is unread. */
static bool reads_claims(const struct extender *x, const char *pod_key)
{
        const struct store *store = cluster_store(x->cluster);
        char namespace_[256];

        (void) store_key_split(pod_key, namespace_);
        return store_serves(store, STORE_RESOURCE_CLAIM, namespace_) &&
               store_age_usec(store, 1u << STORE_RESOURCE_CLAIM, extender_now(x)) == 0;
}

static void look_at_pod(struct extender *x, struct ledger_pod *pod)
{
        const struct claims *claims = cluster_claims(x->cluster);
        bool stays = pod->assumed || pod->deleting || pod->ended;
        const char *device = stays ? NULL : claims_lost(claims, pod->key, pod->node->name),
                   *claim = stays || !reads_claims(x, pod->key) ? NULL : claims_lost_gone(claims, pod->key);

        if (claims_lost_judge(&pod->lost, device != NULL || claim != NULL, extender_now(x)))
                evict(x, pod, device, claim);
}

static bool offers_less(const struct ledger_node *node)
{
        return node->devices != NULL && node->devices->lost;
}

/* Of nodes whose pods are not all looked at. */
static void look_at_gone(void *userdata, const char *pod_key)
{
        struct extender *x = userdata;
        char namespace_[256];
        const char *name = store_key_split(pod_key, namespace_);
        struct ledger_pod *pod = ledger_pods_find(cluster_ledger(x->cluster), namespace_, name);

        if (pod != NULL && pod->node != NULL && !offers_less(pod->node))
                look_at_pod(x, pod);
}

void lost_claims_look(struct extender *x)
{
        const struct ledger *ledger = cluster_ledger(x->cluster);

        if (!leader_leads(x->leader) || !cluster_is_ready(x->cluster))
                return;
        for (uint32_t i = 0; i < ledger->node_count; i++)
                if (offers_less(ledger->nodes[i]))
                        for (struct ledger_pod *pod = ledger->nodes[i]->pods; pod != NULL;
                             pod = pod->next_on_node)
                                look_at_pod(x, pod);
        claims_lost_gone_each(cluster_claims(x->cluster), look_at_gone, x);
}
