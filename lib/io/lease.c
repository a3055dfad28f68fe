#include "io/lease.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "codec/timestamp.h"
#include "core/text.h"
#include "io/kube_client.h"
#include "io/loop.h"

#define SECOND_USEC UINT64_C(1000000)

struct lease {
        sd_event *loop;
        struct kube_client *client;
        struct kube_call *call;
        sd_event_source *timer, *expiry;
        char *collection, *name, *identity;
        uint64_t duration_usec, renew_usec, retry_usec;
        void (*changed)(void *userdata, bool leading, const char *holder);
        void (*trouble)(void *userdata, const char *sentence);
        void *userdata;
        void (*stepped_down)(void *userdata);

        json_t *object;         /* the Lease as last read or written; NULL = not known */
        char holder[256];       /* of it */
        uint64_t observed_usec; /* when we saw it change last */
        uint64_t asked_usec;    /* when the call under way began */
        uint64_t renewed_usec;  /* when the last successful renewal was asked for; 0 = we do not hold it */
        bool leading;           /* what the user was told last */
        bool leaving;
};

/* --- what we know
 * ------------------------------------------------------------------------------------------------ */

static const char *text_of(const json_t *object, const char *outer, const char *inner)
{
        const char *value = json_string_value(json_object_get(json_object_get(object, outer), inner));

        return value != NULL ? value : "";
}

static bool same_claim(const json_t *a, const json_t *b)
{
        return strcmp(text_of(a, "metadata", "resourceVersion"), text_of(b, "metadata", "resourceVersion")) ==
               0;
}

static void observe(struct lease *l, json_t *object)
{
        if (l->object == NULL || !same_claim(l->object, object))
                l->observed_usec = loop_now_usec(l->loop);
        json_decref(l->object);
        l->object = object;
        (void) text_copy(l->holder, sizeof(l->holder), text_of(object, "spec", "holderIdentity"));
}

static bool held_by_us(const struct lease *l)
{
        return strcmp(l->holder, l->identity) == 0;
}

/* Somebody else's claim counts for as long as it says, from when we saw it change. */
static bool held_by_another(const struct lease *l)
{
        json_int_t seconds = json_integer_value(
                json_object_get(json_object_get(l->object, "spec"), "leaseDurationSeconds"));
        uint64_t usec = seconds > 0 && seconds <= 3600 ? (uint64_t) seconds * SECOND_USEC : l->duration_usec;

        return l->holder[0] != '\0' && !held_by_us(l) && loop_now_usec(l->loop) < l->observed_usec + usec;
}

bool lease_leading(const struct lease *l)
{
        return l->renewed_usec != 0 && !l->leaving &&
               loop_now_usec(l->loop) < l->renewed_usec + l->renew_usec;
}

const char *lease_holder(const struct lease *l)
{
        return l->holder;
}

static void tell(struct lease *l)
{
        bool leading = lease_leading(l);

        if (leading == l->leading)
                return;
        l->leading = leading;
        l->changed(l->userdata, leading, l->holder);
}

static void on_expiry(void *userdata)
{
        struct lease *l = userdata;

        l->expiry = sd_event_source_disable_unref(l->expiry);
        tell(l);
}

static void renewed(struct lease *l)
{
        uint64_t now = loop_now_usec(l->loop), end;

        l->renewed_usec = l->asked_usec; /* not when the answer came: the others may count from then */
        end = l->renewed_usec + l->renew_usec;
        l->expiry = sd_event_source_disable_unref(l->expiry);
        (void) loop_after(l->loop, end > now ? end - now + 1000 : 0, on_expiry, l, &l->expiry);
        tell(l);
}

/* --- what we write
 * -------------------------------------------------------------------------------------------------- */

static json_t *claim(const struct lease *l, const char *holder)
{
        json_t *object = l->object != NULL ? json_deep_copy(l->object) : json_object(),
               *spec = json_object_get(object, "spec");
        json_int_t transitions = json_integer_value(json_object_get(spec, "leaseTransitions"));
        uint64_t now = loop_realtime_usec(l->loop);
        char time[TIMESTAMP_BYTES];

        if (!json_is_object(spec)) {
                spec = json_object();
                (void) json_object_set_new(object, "spec", spec);
        }
        (void) timestamp_format(now % SECOND_USEC != 0 ? now : now + 1,
                                time); /* a MicroTime has six digits */
        (void) json_object_set_new(object, "apiVersion", json_string("coordination.k8s.io/v1"));
        (void) json_object_set_new(object, "kind", json_string("Lease"));
        if (l->object == NULL)
                (void) json_object_set_new(object, "metadata", json_pack("{s:s}", "name", l->name));
        if (strcmp(text_of(object, "spec", "holderIdentity"), holder) != 0 && holder[0] != '\0') {
                (void) json_object_set_new(spec, "acquireTime", json_string(time));
                (void) json_object_set_new(spec, "leaseTransitions",
                                           json_integer(l->object != NULL ? transitions + 1 : 0));
        }
        (void) json_object_set_new(spec, "holderIdentity", json_string(holder));
        (void) json_object_set_new(spec, "renewTime", json_string(time));
        (void) json_object_set_new(
                spec, "leaseDurationSeconds",
                json_integer(holder[0] != '\0' ? (json_int_t) (l->duration_usec / SECOND_USEC) : 1));
        return object;
}

static void ask(struct lease *l, const char *method, bool collection, const json_t *body,
                void (*done)(void *userdata, const struct http_result *result));
static void look(struct lease *l);

static void on_due(void *userdata)
{
        struct lease *l = userdata;

        l->timer = sd_event_source_disable_unref(l->timer);
        look(l);
}

static void wait_for_next(struct lease *l)
{
        uint32_t jitter = 0;

        (void) !getrandom(&jitter, sizeof(jitter), GRND_NONBLOCK);
        (void) loop_after(l->loop, l->retry_usec - jitter % (l->retry_usec / 5 + 1), on_due, l, &l->timer);
}

static void complain(struct lease *l, const char *what, const char *sentence)
{
        char line[512];

        (void) text_format(line, sizeof(line), "lease '%s': %s: %s", l->name, what, sentence);
        if (l->trouble != NULL)
                l->trouble(l->userdata, line);
}

static void on_written(void *userdata, const struct http_result *result)
{
        struct lease *l = userdata;
        char sentence[300];
        int r = kube_result(result, sentence, sizeof(sentence));
        json_t *object = r == 0 ? json_loadb(result->body, result->body_bytes, 0, NULL) : NULL;

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
                ask(l, "POST", true, body, on_written);
        else
                ask(l, "PUT", false, body, on_written);
        json_decref(body);
}

static void on_read(void *userdata, const struct http_result *result)
{
        struct lease *l = userdata;
        char sentence[300];
        int r = kube_result(result, sentence, sizeof(sentence));
        json_t *object = r == 0 ? json_loadb(result->body, result->body_bytes, 0, NULL) : NULL;

        l->call = NULL;
        if (result->error == -ECANCELED)
                return;
        if (object != NULL)
                observe(l, object);
        if (r == -ENOENT) {
                json_decref(l->object);
                l->object = NULL;
                l->holder[0] = '\0';
        }
        if ((object != NULL && !held_by_another(l)) || r == -ENOENT) {
                write_claim(l);
                return;
        }
        if (object == NULL)
                complain(l, "not read", r < 0 ? sentence : "the reply is no JSON");
        tell(l);
        wait_for_next(l);
}

/* The holder knows what it wrote last and just writes again; a conflict tells it that somebody else did. */
static void look(struct lease *l)
{
        if (l->object != NULL && held_by_us(l) && l->renewed_usec != 0)
                write_claim(l);
        else
                ask(l, "GET", false, NULL, on_read);
}

static void ask(struct lease *l, const char *method, bool collection, const json_t *body,
                void (*done)(void *userdata, const struct http_result *result))
{
        struct text path = { 0 };
        struct kube_request request = { .method = method,
                                        .body = body,
                                        .timeout_usec =
                                                l->renew_usec / 2, /* two tries before the claim is lost */
                                        .done = done,
                                        .userdata = l };
        int r = -ENOMEM;

        l->asked_usec = loop_now_usec(l->loop);
        text_append(&path, l->collection);
        if (!collection)
                text_printf(&path, "/%s", l->name);
        request.path = path.data;
        if (!path.failed)
                r = kube_call_start(l->client, &request, &l->call);
        text_free(&path);
        if (r < 0)
                wait_for_next(l);
}

/* --- life
 * ------------------------------------------------------------------------------------------------------------
 */

static void on_stepped_down(void *userdata, const struct http_result *result)
{
        struct lease *l = userdata;

        l->call = NULL;
        if (result->error != -ECANCELED && l->stepped_down != NULL)
                l->stepped_down(l->userdata);
}

void lease_step_down(struct lease *l, void (*done)(void *userdata))
{
        bool held = l->object != NULL && held_by_us(l) && l->renewed_usec != 0;
        json_t *body;

        l->leaving = true;
        l->stepped_down = done;
        l->timer = sd_event_source_disable_unref(l->timer);
        kube_call_cancel(l->call);
        l->call = NULL;
        tell(l);
        if (!held) {
                if (done != NULL)
                        done(l->userdata);
                return;
        }
        body = claim(l, "");
        ask(l, "PUT", false, body, on_stepped_down);
        json_decref(body);
}

static int configure(struct lease *l, const struct lease_options *o, struct err *err)
{
        const char *namespace_ = o->namespace_ != NULL ? o->namespace_ : kube_client_namespace(l->client);
        struct text collection = { 0 };

        l->duration_usec = (o->duration_sec != 0 ? o->duration_sec : 12) * SECOND_USEC;
        l->renew_usec = (o->renew_sec != 0 ? o->renew_sec : 8) * SECOND_USEC;
        l->retry_usec = (o->retry_sec != 0 ? o->retry_sec : 2) * SECOND_USEC;
        if (l->renew_usec >= l->duration_usec || l->retry_usec >= l->renew_usec)
                return err_set(err, -EINVAL, "a lease's times must be retry < renew < duration");
        if (!kube_name_is_safe(o->name) || !kube_name_is_safe(namespace_) || o->identity[0] == '\0')
                return err_set(err, -EINVAL, "'%s' is no name for a lease, or its holder has none", o->name);
        text_printf(&collection, "/apis/coordination.k8s.io/v1/namespaces/%s/leases", namespace_);
        l->collection = text_take(&collection, NULL);
        l->name = strdup(o->name);
        l->identity = strdup(o->identity);
        if (l->collection == NULL || l->name == NULL || l->identity == NULL)
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
        l->userdata = options->userdata;
        r = kube_client_new(loop, options->kubeconfig, &l->client, err);
        if (r == 0)
                r = configure(l, options, err);
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
        sd_event_unref(l->loop);
        free(l);
}
