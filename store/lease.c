/* Get, create or update the Lease object every few seconds, and count the time since by our own clock
 * alone. */
#include "store/lease.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_merge.h"
#include "base/json/json_read.h"
#include "base/json/json_table.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "io/clock.h"
#include "io/jitter.h"
#include "io/loop.h"
#include "store/kubernetes/kube.h"

#define SECOND_USEC    UINT64_C(1000000)
#define GIVE_BACK_USEC SECOND_USEC

/* A claim, judged by when we saw it change. */
struct claim_seen {
        char version[64], holder[256];
        uint64_t observed_usec, duration_usec, transitions;
        const char *said; /* the holder, while it is read: a longer one than any of ours is cut */
};

#define AT(member) JSON_TABLE_AT(struct claim_seen, member)

/* clang-format off */
static const struct json_table_row claim_rows[] = {
        { "metadata.resourceVersion",  JSON_TABLE_CHARS, AT(version) },
        { "spec.holderIdentity",       JSON_TABLE_BORROWED, AT(said) },
        { "spec.leaseDurationSeconds", JSON_TABLE_UINT,  AT(duration_usec), .min = 1, .max = 3600, .scale = SECOND_USEC },
        { "spec.leaseTransitions",     JSON_TABLE_UINT,  AT(transitions), .max = INT32_MAX },
        { .name = NULL },
};
/* clang-format on */
static const struct json_table claim_table = { .rows = claim_rows,
                                               .size_bytes = sizeof(struct claim_seen),
                                               .lenient = true };

struct lease {
        sd_event *loop;
        struct kube_client *client;
        struct kube_call *call;
        sd_event_source *timer, *expiry;
        char *kubeconfig, *collection, *name, *identity, *beside, *host, *address;
        uint64_t duration_usec, renew_usec, retry_usec;
        void (*changed)(void *userdata, bool leading, const char *holder);
        void (*trouble)(void *userdata, const char *sentence);
        bool (*idle)(void *userdata);
        void *userdata;

        json_t *object;        /* the Lease as last read or written; NULL = not known */
        struct claim_seen own; /* of it */
        uint64_t asked_usec;   /* when the call under way began */
        uint64_t renewed_usec; /* when the last successful renewal was asked for; 0 = we do not hold it */
        bool leading;          /* what the user was told last */
        bool leaving;
        struct claim_seen neighbour; /* of `beside` */
};

/* What an object claims; seen to change now, or when it was. */
static void see(const struct lease *l, const json_t *object, struct claim_seen *seen)
{
        struct claim_seen now = { .observed_usec = clock_monotonic_usec(),
                                  .duration_usec = l->duration_usec };

        (void) json_table_decode(&claim_table, object, &now, NULL);
        (void) text_copy(now.holder, sizeof(now.holder), now.said != NULL ? now.said : "");
        now.said = NULL;
        if (now.version[0] != '\0' && strcmp(now.version, seen->version) == 0)
                now.observed_usec = seen->observed_usec;
        *seen = now;
}

static void observe(struct lease *l, json_t *object)
{
        if (l->object == NULL)
                l->own.version[0] = '\0';
        see(l, object, &l->own);
        json_decref(l->object);
        l->object = object;
}

static bool held_by_us(const struct lease *l)
{
        return strcmp(l->own.holder, l->identity) == 0;
}

/* Somebody else's claim counts for as long as it says, from when we saw it change. */
static bool held_by_another(const struct lease *l)
{
        return l->own.holder[0] != '\0' && !held_by_us(l) &&
               clock_monotonic_usec() < l->own.observed_usec + l->own.duration_usec;
}

/* Do those that we serve lead elsewhere? */
static bool is_wanted_elsewhere(const struct lease *l)
{
        const struct claim_seen *n = &l->neighbour;
        size_t bytes = l->host != NULL ? strlen(l->host) : 0;
        bool beside_us = strncmp(n->holder, l->host != NULL ? l->host : "", bytes) == 0 &&
                         (n->holder[bytes] == '_' || n->holder[bytes] == '\0');

        return l->beside != NULL && n->holder[0] != '\0' && !beside_us &&
               clock_monotonic_usec() < n->observed_usec + n->duration_usec;
}

/* By the clock itself and not by the loop's, which stands as long as a handler runs: one that was held up, or
 * a process that was stopped in the midst of it, would go on leading by the time at which it began. */
bool lease_leading(const struct lease *l)
{
        return l->renewed_usec != 0 && !l->leaving && !is_wanted_elsewhere(l) &&
               clock_monotonic_usec() < l->renewed_usec + l->renew_usec;
}

const char *lease_holder(const struct lease *l)
{
        return l->own.holder;
}

static void tell(struct lease *l)
{
        bool leading = lease_leading(l);

        if (leading == l->leading)
                return;
        l->leading = leading;
        l->changed(l->userdata, leading, l->own.holder);
}

static void on_expiry(void *userdata)
{
        tell(userdata);
}

static void renewed(struct lease *l)
{
        uint64_t now = loop_now_usec(l->loop), end;

        l->renewed_usec = l->asked_usec; /* not when the answer came: the others may count from then */
        end = l->renewed_usec + l->renew_usec;
        loop_rearm(l->expiry, end > now ? end - now + 1000 : 0);
        tell(l);
}

static json_t *claim(const struct lease *l, const char *holder)
{
        json_t *object = l->object != NULL ? json_deep_copy(l->object)
                                           : json_pack("{s:{s:s}}", "metadata", "name", l->name);
        bool taken = holder[0] != '\0' && (l->object == NULL || strcmp(l->own.holder, holder) != 0);
        uint64_t now = loop_realtime_usec(l->loop);
        char time[TIMESTAMP_BYTES];
        json_t *patch;

        (void) timestamp_format(now % SECOND_USEC != 0 ? now : now + 1,
                                time); /* a MicroTime has six digits */
        patch = json_pack("{s:s, s:s, s:{s:s, s:s, s:I}}", "apiVersion", "coordination.k8s.io/v1", "kind",
                          "Lease", "spec", "holderIdentity", holder, "renewTime", time,
                          "leaseDurationSeconds",
                          holder[0] != '\0' ? (json_int_t) (l->duration_usec / SECOND_USEC) : 1);
        if (l->address != NULL)
                (void) json_object_set_new(patch, "metadata",
                                           json_pack("{s:{s:s}}", "annotations", LEASE_ADDRESS, l->address));
        (void) json_merge_patch(object, patch);
        json_decref(patch);
        if (taken) {
                patch = json_pack("{s:{s:s, s:I}}", "spec", "acquireTime", time, "leaseTransitions",
                                  l->object != NULL ? (json_int_t) l->own.transitions + 1 : 0);
                (void) json_merge_patch(object, patch);
                json_decref(patch);
        }
        return object;
}

static void ask(struct lease *l, const char *name, const char *method, const json_t *body,
                void (*done)(void *userdata, const struct http_call_result *result));
static void look(struct lease *l);

static void on_due(void *userdata)
{
        look(userdata);
}

static void wait_for_next(struct lease *l)
{
        loop_rearm(l->timer, l->retry_usec - jitter_below(l->retry_usec / 5 + 1));
}

static void complain(struct lease *l, const char *what, const char *sentence)
{
        char line[512];

        (void) text_format(line, sizeof(line), "lease '%s': %s: %s", l->name, what, sentence);
        if (l->trouble != NULL)
                l->trouble(l->userdata, line);
}

static void on_written(void *userdata, const struct http_call_result *result)
{
        struct lease *l = userdata;
        char sentence[300];
        int r = kube_result(result, sentence, sizeof(sentence));
        json_t *object = r == 0 ? json_read(result->body, result->body_bytes, 0, NULL) : NULL;

        l->call = NULL;
        if (result->error == -ECANCELED)
                return;
        if (object != NULL) {
                observe(l, object);
                renewed(l);
        } else if (r == -ESTALE || r == -EEXIST) { /* somebody was quicker: who? */
                json_decref(l->object);
                l->object = NULL;
        } else
                complain(l, "not renewed", r < 0 ? sentence : "the reply is no JSON");
        tell(l);
        wait_for_next(l);
}

static void write_claim(struct lease *l)
{
        json_t *body = claim(l, l->identity);

        if (l->object == NULL)
                ask(l, NULL, "POST", body, on_written);
        else
                ask(l, l->name, "PUT", body, on_written);
        json_decref(body);
}

static void on_read(void *userdata, const struct http_call_result *result)
{
        struct lease *l = userdata;
        char sentence[300];
        int r = kube_result(result, sentence, sizeof(sentence));
        json_t *object = r == 0 ? json_read(result->body, result->body_bytes, 0, NULL) : NULL;

        l->call = NULL;
        if (result->error == -ECANCELED)
                return;
        if (object != NULL)
                observe(l, object);
        if (r == -ENOENT) {
                json_decref(l->object);
                l->object = NULL;
                l->own.holder[0] = '\0';
        }
        if (((object != NULL && !held_by_another(l)) || r == -ENOENT) && !is_wanted_elsewhere(l)) {
                write_claim(l);
                return;
        }
        if (object == NULL && r != -ENOENT)
                complain(l, "not read", r < 0 ? sentence : "the reply is no JSON");
        tell(l);
        wait_for_next(l);
}

static void on_given_back(void *userdata, const struct http_call_result *result)
{
        struct lease *l = userdata;

        l->call = NULL;
        if (result->error == -ECANCELED)
                return;
        json_decref(l->object); /* read again, whatever became of it */
        l->object = NULL;
        l->own.holder[0] = '\0';
        wait_for_next(l);
}

/* The claim is of no use to us: what is being committed ends first, then the others may have it. */
static void give_way(struct lease *l)
{
        json_t *body;

        if (l->idle != NULL && !l->idle(l->userdata)) {
                wait_for_next(l);
                return;
        }
        l->renewed_usec = 0;
        body = claim(l, "");
        ask(l, l->name, "PUT", body, on_given_back);
        json_decref(body);
}

/* The holder knows what it wrote last and just writes again; a conflict tells it that somebody else did. */
static void look_at_own(struct lease *l)
{
        bool held = l->object != NULL && held_by_us(l) && l->renewed_usec != 0;

        tell(l);
        if (held && is_wanted_elsewhere(l))
                give_way(l);
        else if (held)
                write_claim(l);
        else
                ask(l, l->name, "GET", NULL, on_read);
}

static void on_neighbour(void *userdata, const struct http_call_result *result)
{
        struct lease *l = userdata;
        json_t *object;

        l->call = NULL;
        if (result->error == -ECANCELED)
                return;
        object = result->error == 0 && result->status == 200
                         ? json_read(result->body, result->body_bytes, 0, NULL)
                         : NULL;
        if (object != NULL)
                see(l, object, &l->neighbour);
        if (result->error == 0 && result->status == 404)
                l->neighbour.holder[0] = l->neighbour.version[0] = '\0';
        json_decref(object);
        look_at_own(l);
}

static void look(struct lease *l)
{
        if (l->beside != NULL)
                ask(l, l->beside, "GET", NULL, on_neighbour);
        else
                look_at_own(l);
}

/* @name: NULL = the collection. */
static void ask(struct lease *l, const char *name, const char *method, const json_t *body,
                void (*done)(void *userdata, const struct http_call_result *result))
{
        struct text path = { 0 };
        struct kube_request request = { .method = method,
                                        .body = body,
                                        .timeout_usec =
                                                l->renew_usec / 3, /* two tries before the claim is lost */
                                        .done = done,
                                        .userdata = l };
        int r = -ENOMEM;

        l->asked_usec = loop_now_usec(l->loop);
        text_append(&path, l->collection);
        if (name != NULL)
                text_printf(&path, "/%s", name);
        request.path = path.data;
        if (!path.failed)
                r = kube_call_start(l->client, &request, &l->call);
        text_free(&path);
        if (r < 0)
                wait_for_next(l);
}

static void on_last_word(void *userdata, const struct http_call_result *result)
{
        (void) result;
        (void) sd_event_exit(userdata, 0);
}

void lease_give_back(struct lease *l)
{
        struct kube_client *client = NULL;
        struct text path = { 0 };
        sd_event *loop = NULL;
        json_t *body = NULL;
        int r = l == NULL || !lease_leading(l) || (l->idle != NULL && !l->idle(l->userdata)) ? -EALREADY : 0;

        if (r == 0)
                r = sd_event_new(&loop);
        if (r >= 0)
                r = kube_client_new(loop, l->kubeconfig, &client, NULL);
        if (r >= 0) {
                body = claim(l, "");
                text_printf(&path, "%s/%s", l->collection, l->name);
                r = path.failed ? -ENOMEM
                                : kube_call_start(client,
                                                  &(struct kube_request){ .method = "PUT",
                                                                          .path = path.data,
                                                                          .body = body,
                                                                          .timeout_usec = GIVE_BACK_USEC,
                                                                          .done = on_last_word,
                                                                          .userdata = loop },
                                                  NULL);
        }
        if (r >= 0)
                (void) sd_event_loop(loop);
        if (l != NULL)
                l->leaving = true;
        json_decref(body);
        text_free(&path);
        kube_client_free(client);
        sd_event_unref(loop);
}

static int configure(struct lease *l, const struct lease_options *o, struct err *err)
{
        const char *namespace_ = o->namespace_ != NULL ? o->namespace_ : kube_client_namespace(l->client);
        struct text collection = { 0 };

        l->duration_usec = (o->duration_sec != 0 ? o->duration_sec : 10) * SECOND_USEC;
        l->renew_usec = (o->renew_sec != 0 ? o->renew_sec : 6) * SECOND_USEC;
        l->retry_usec = (o->retry_sec != 0 ? o->retry_sec : 1) * SECOND_USEC;
        if (l->renew_usec >= l->duration_usec || l->retry_usec >= l->renew_usec)
                return err_set(err, -EINVAL, "a lease's times must be retry < renew < duration");
        if (!kube_name_is_safe(o->name) || !kube_name_is_safe(namespace_) || o->identity[0] == '\0')
                return err_set(err, -EINVAL, "'%s' is no name for a lease, or its holder has none", o->name);
        if (o->beside != NULL && (!kube_name_is_safe(o->beside) || o->host == NULL || o->host[0] == '\0'))
                return err_set(err, -EINVAL, "'%s' is no name for a lease, or this host has none", o->beside);
        text_printf(&collection, LEASE_COLLECTION, namespace_);
        l->collection = text_take(&collection, NULL);
        l->name = strdup(o->name);
        l->identity = strdup(o->identity);
        l->kubeconfig = o->kubeconfig != NULL ? strdup(o->kubeconfig) : NULL;
        l->beside = o->beside != NULL ? strdup(o->beside) : NULL;
        l->host = o->host != NULL ? strdup(o->host) : NULL;
        l->address = o->address != NULL ? strdup(o->address) : NULL;
        if (l->collection == NULL || l->name == NULL || l->identity == NULL ||
            (o->kubeconfig != NULL && l->kubeconfig == NULL) || (o->beside != NULL && l->beside == NULL) ||
            (o->host != NULL && l->host == NULL) || (o->address != NULL && l->address == NULL))
                return err_set(err, -ENOMEM, "out of memory");
        return 0;
}

int lease_open(sd_event *loop, const struct lease_options *options, struct lease **ret, struct err *err)
{
        struct lease *l = calloc(1, sizeof(*l));
        int r;

        if (l == NULL)
                return err_set(err, -ENOMEM, "out of memory");
        l->loop = sd_event_ref(loop);
        l->changed = options->changed;
        l->trouble = options->trouble;
        l->idle = options->idle;
        l->userdata = options->userdata;
        r = kube_client_new(loop, options->kubeconfig, &l->client, err);
        if (r == 0)
                r = configure(l, options, err);
        if (r == 0)
                r = loop_timer(loop, on_expiry, l, &l->expiry);
        if (r == 0)
                r = loop_after(loop, 0, on_due, l, &l->timer);
        if (r < 0) {
                lease_close(l);
                return r;
        }
        *ret = l;
        return 0;
}

void lease_close(struct lease *l)
{
        if (l == NULL)
                return;
        kube_call_cancel(l->call);
        kube_client_free(l->client);
        sd_event_source_disable_unref(l->timer);
        sd_event_source_disable_unref(l->expiry);
        json_decref(l->object);
        free(l->collection);
        free(l->name);
        free(l->identity);
        free(l->kubeconfig);
        free(l->beside);
        free(l->host);
        free(l->address);
        sd_event_unref(l->loop);
        free(l);
}
