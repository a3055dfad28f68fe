/* The bind verb, the only commit. A bind is checked anew, assumed in the ledger, written to the store,
 * and answered when the store has it. */
#include "scheduler-extender/bind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/failpoint.h"
#include "io/loop.h"
#include "scheduler-extender/decide/score.h"
#include "scheduler-extender/decide/weighting_share.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_jobs.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/ledger/pod_request.h"
#include "scheduler-extender/settle.h"
#include "scheduler-extender/wire/extender_bind.h"
#include "scheduler-extender/wire/extender_reply.h"
#include "store/leader.h"

/* Two watches of one API server are milliseconds apart, on a busy one hundreds of them. */
#define AWAIT_USEC UINT64_C(1000000)
#define AWAIT_MAX  256

/* A bind that is being written. The pod may be gone when the answer comes, so it is found again by its name.
 */
struct bind {
        struct bind *next_awaiting;
        sd_event_source *deadline; /* of one that waits for its pod; NULL = it does not */
        struct extender *extender;
        struct http_pending *pending;
        struct extender_bind args;
        struct weighting_share share; /* of each batch, which the launcher passes on */
        uint64_t begin_nsec;
};

static void fill_reply(struct http_reply *reply, const char *error)
{
        reply->body = extender_reply_bind(error, &reply->body_bytes);
        if (reply->body == NULL)
                http_reply_error(reply, 503, "bind: no memory");
}

/* Whoever does not lead closes the connection: through a Service, the next try may find who does. */
static void answer_later(struct bind *bind, const char *error)
{
        struct http_reply reply = { 0 };

        fill_reply(&reply, error);
        reply.close = !leader_leads(bind->extender->leader);
        http_resume(bind->pending, &reply);
        FAILPOINT("bind.answered");
        extender_end(bind->extender, VERB_BIND, bind->begin_nsec, error[0] != '\0');
        extender_bind_free(&bind->args);
        free(bind);
}

bool bind_certainly_failed(const struct extender *x, int result)
{
        static const int certain[] = { ENOENT, ESTALE, EALREADY, EINVAL, EACCES, EEXIST, ENOSPC, EROFS };

        for (size_t i = 0; i < ARRAY_SIZE(certain); i++)
                if (result == -certain[i])
                        return true;
        return result == -EPERM && leader_leads(x->leader); /* else it says that we lead no longer */
}

/* What stands beside a bind, where its owner cannot write: the groups ("GROUP=CHIPS,..."), whether they are
 * borrowed, and its share. */
static json_t *annotations_of(const struct ledger *ledger, const struct weighting_share *share,
                              const struct ledger_pod_part *parts, size_t part_count, bool borrowed)
{
        char number[32];
        struct text text = { 0 };
        CLEANUP(free_p) char *groups = NULL;
        json_t *annotations;

        for (size_t i = 0; i < part_count; i++)
                text_printf(&text, "%s%s=%u", i > 0 ? "," : "",
                            symbols_name(&ledger->symbols, parts[i].group), parts[i].chips);
        groups = text_take(&text, NULL);
        annotations = json_object();
        if (groups != NULL && part_count > 0)
                (void) json_object_set_new(annotations, POD_ANNOTATION_GROUPS, json_string(groups));
        if (borrowed)
                (void) json_object_set_new(annotations, POD_ANNOTATION_BORROWED, json_string("true"));
        if (share->batch > 0) {
                (void) text_format(number, sizeof(number), "%.17g", share->weight);
                (void) json_object_set_new(annotations, POD_ANNOTATION_WEIGHT, json_string(number));
                (void) text_format(number, sizeof(number), "%llu", (unsigned long long) share->batch);
                (void) json_object_set_new(annotations, POD_ANNOTATION_BATCH_SHARE, json_string(number));
                (void) json_object_set_new(annotations, POD_ANNOTATION_SPEED_SOURCE,
                                           json_string(chip_speed_names[share->speeds.source]));
        }
        return annotations;
}

static void written(void *userdata, int result, const char *sentence);

/* With the parts that the ledger has of it, and the share of the first try. @settles: it came to no clear end
 */
static void write_bind(struct bind *bind, const struct ledger_pod *pod, bool settles)
{
        json_t *annotations = annotations_of(cluster_ledger(bind->extender->cluster), &bind->share,
                                             pod->parts, pod->part_count, pod->borrowed);
        struct store_binding binding = {
                .namespace_ = bind->args.pod_namespace,
                .name = bind->args.pod_name,
                .uid = bind->args.pod_uid,
                .node = bind->args.node,
                .annotations = annotations,
        };

        if (settles)
                settle_bind(bind->extender, &binding);
        else
                store_bind(cluster_store(bind->extender->cluster), &binding, written, bind);
        json_decref(annotations);
}

static void written(void *userdata, int result, const char *sentence)
{
        struct bind *bind = userdata;
        struct extender *x = bind->extender;
        struct ledger *ledger = cluster_ledger(x->cluster);
        struct ledger_pod *pod = ledger_pods_find(ledger, bind->args.pod_namespace, bind->args.pod_name);

        x->commits--;
        if (pod != NULL && strcmp(pod->uid, bind->args.pod_uid) == 0) {
                pod->writing = false;
                pod->done = pod->done || result == 0;
        }
        if (result == 0) {
                FAILPOINT("bind.written");
                x->metrics.binds++;
                extender_log(x, LOG_INFO, "bind", "pod=%s/%s node=%s", bind->args.pod_namespace,
                             bind->args.pod_name, bind->args.node);
                answer_later(bind, "");
                return;
        }
        x->metrics.bind_failures++;
        if (pod != NULL && strcmp(pod->uid, bind->args.pod_uid) == 0 && pod->assumed) {
                if (bind_certainly_failed(x, result))
                        ledger_pods_forget(ledger, pod);
                else if (result != -ECANCELED && !pod->done)
                        write_bind(bind, pod, true);
        }
        extender_log(x, LOG_WARNING, "bind-failed", "pod=%s/%s node=%s error=\"%s\"",
                     bind->args.pod_namespace, bind->args.pod_name, bind->args.node, sentence);
        answer_later(bind,
                     sentence != NULL && sentence[0] != '\0' ? sentence : "the bind could not be written");
}

/* What somebody has to know of the speeds behind the share. */
static void tell_speeds(struct extender *x, const struct ledger_pod *pod, const struct weighting_share *share)
{
        const struct symbols *symbols = &cluster_ledger(x->cluster)->symbols;
        char sentence[CHIP_SPEED_REMARK_BYTES];
        const char *word = chip_speed_remark(
                &share->speeds, share->lacking == NULL ? "" : ledger_speeds_device(symbols, share->lacking),
                share->lacking == NULL ? "" : share->lacking_node->name, sentence);

        if (word == NULL || share->batch == 0)
                return;
        extender_log(x, LOG_WARNING, "bind-speeds", "pod=%s reason=%s message=\"%s\"", pod->key, word,
                     sentence);
        extender_event(x, STORE_POD, pod->key, word, sentence);
}

/* The rules once more, on the ledger as it is now. Return: "" and the parts, or why not. */
static const char *check_again(struct extender *x, const struct ledger_pod *pod,
                               const struct ledger_node *node, struct ledger_pod_part *parts,
                               size_t *part_count, struct weighting_share *share, struct err *err)
{
        struct pod_request pod_request;
        enum reason reason;

        *part_count = 0;
        if (pod_request_begin_pod(x->cluster, pod, extender_now(x), true, &pod_request, err) < 0) {
                pod_request_end(x->cluster, &pod_request);
                return err->msg;
        }
        reason = rules_judge(&pod_request.context, node);
        if (reason == REASON_NONE && pod_request.request.item_count > 0)
                *part_count = score_parts(&pod_request.context, node, parts);
        /* members that the job controller made have their share from the job's plan */
        if (pod_request.context.weighting != NULL &&
            (x->jobs == NULL || pod_request.job == NULL || pod_request.job->training == NULL) &&
            weighting_share(pod_request.context.weighting, pod_request.job, pod, &pod_request.request, node,
                            parts, *part_count, share) < 0) {
                pod_request_end(x->cluster, &pod_request);
                return "no memory";
        }
        if (share->chips > 1)
                tell_speeds(x, pod, share);
        pod_request_end(x->cluster, &pod_request);
        return reason_text(reason)->message;
}

static const char not_seen[] = "the pod is not in the store",
                  of_other_uid[] = "the pod of that name has another uid";

/* Return: NULL = the bind is being written; else what to answer at once ("" = done). @request: NULL = it is
 * suspended already */
static const char *begin_bind(struct bind *bind, const struct http_request *request, struct err *err)
{
        struct extender *x = bind->extender;
        struct ledger *ledger = cluster_ledger(x->cluster);
        struct ledger_pod *pod = ledger_pods_find(ledger, bind->args.pod_namespace, bind->args.pod_name);
        struct ledger_node *node = ledger_nodes_find(ledger, bind->args.node, strlen(bind->args.node));
        struct ledger_pod_part parts[LEDGER_POD_PARTS_MAX];
        const char *refusal = extender_refuses(x);
        size_t part_count = 0;

        if (refusal == NULL)
                refusal = leader_refuses(x->leader);
        if (refusal != NULL)
                return refusal;
        if (pod == NULL)
                return not_seen;
        if (strcmp(pod->uid, bind->args.pod_uid) != 0)
                return of_other_uid;
        if (pod->ended || pod->deleting)
                return "the pod has ended or is being deleted";
        if (pod->node != NULL && strcmp(pod->node->name, bind->args.node) != 0)
                return "the pod is bound to another node";
        if (pod->node != NULL && !pod->assumed)
                return "";
        if (pod->node == NULL) {
                if (node == NULL)
                        return reason_text(REASON_NODE_UNKNOWN)->message;
                refusal = check_again(x, pod, node, parts, &part_count, &bind->share, err);
                if (refusal[0] != '\0')
                        return refusal;
                if (ledger_pods_assume(ledger, pod, node, parts, part_count) < 0)
                        return "no memory";
        }
        FAILPOINT("bind.assumed");
        pod->writing = true;
        x->commits++;
        if (request != NULL)
                bind->pending = http_suspend(request);
        write_bind(bind, pod, false);
        FAILPOINT("bind.sent");
        return NULL;
}

static void try_again(struct bind *bind)
{
        struct err err = { 0 };
        const char *answer = begin_bind(bind, NULL, &err);

        if (answer != NULL)
                answer_later(bind, answer);
}

/* It waits no longer. */
static void leave_awaiting(struct bind *bind)
{
        struct bind **place = &bind->extender->awaiting;

        while (*place != bind)
                place = &(*place)->next_awaiting;
        *place = bind->next_awaiting;
        bind->extender->awaiting_count--;
        bind->deadline = sd_event_source_disable_unref(bind->deadline);
}

static void on_deadline(void *userdata)
{
        struct bind *bind = userdata;

        leave_awaiting(bind);
        try_again(bind);
}

/* Return: is the pod waited for? */
static bool await_pod(struct bind *bind, const struct http_request *request, const char *answer)
{
        struct extender *x = bind->extender;

        if ((answer != not_seen && answer != of_other_uid) || x->awaiting_count >= AWAIT_MAX ||
            loop_after(x->loop, AWAIT_USEC, on_deadline, bind, &bind->deadline) < 0)
                return false;
        bind->pending = http_suspend(request);
        if (bind->pending == NULL) { /* no memory: nobody would hear what comes of it */
                bind->deadline = sd_event_source_disable_unref(bind->deadline);
                return false;
        }
        bind->next_awaiting = x->awaiting;
        x->awaiting = bind;
        x->awaiting_count++;
        return true;
}

void bind_seen(struct extender *x)
{
        const struct ledger *ledger = cluster_ledger(x->cluster);

        for (struct bind *bind = x->awaiting, *next; bind != NULL; bind = next) {
                const struct ledger_pod *pod =
                        ledger_pods_find(ledger, bind->args.pod_namespace, bind->args.pod_name);

                next = bind->next_awaiting;
                if (pod == NULL || strcmp(pod->uid, bind->args.pod_uid) != 0)
                        continue;
                leave_awaiting(bind);
                try_again(bind);
        }
}

void bind_close(struct extender *x)
{
        while (x->awaiting != NULL) {
                struct bind *bind = x->awaiting;

                leave_awaiting(bind);
                answer_later(bind, "the extender ends");
        }
}

void bind_handler(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        struct bind *bind = calloc(1, sizeof(*bind));
        struct extender *x = userdata;
        struct err err = { 0 };
        const char *answer;
        int r;

        if (bind == NULL) {
                http_reply_error(reply, 503, "bind: no memory");
                return;
        }
        bind->extender = x;
        bind->begin_nsec = clock_monotonic_nsec();
        r = extender_bind_decode(request->body, request->body_bytes, &bind->args, &err);
        if (r < 0)
                http_reply_error(reply, 400, "bind: %s", err.msg);
        answer = r < 0 ? "" : begin_bind(bind, request, &err);
        if (answer == NULL || await_pod(bind, request, answer))
                return; /* written() or bind_seen() answers, and frees */
        if (r == 0)
                fill_reply(reply, answer);
        reply->close = r == 0 && !leader_leads(x->leader); /* as in answer_later() */
        extender_end(x, VERB_BIND, bind->begin_nsec, r < 0 || answer[0] != '\0');
        extender_bind_free(&bind->args);
        free(bind);
}
