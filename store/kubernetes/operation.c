/* Sends, judges the answer, waits and sends again, until the operation is over or its time is. */
#include "store/kubernetes/operation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/backoff.h"
#include "base/text.h"
#include "io/jitter.h"
#include "io/loop.h"

#define OPERATION_USEC (20 * UINT64_C(1000000))
#define NOT_LEADING    "this replica does not lead any longer; another one will do it"

void operation_free(struct operation *o)
{
        if (o->previous != NULL)
                o->previous->next = o->next;
        else
                o->all->first = o->next;
        if (o->next != NULL)
                o->next->previous = o->previous;
        free(o->namespace_);
        free(o->name);
        free(o->uid);
        free(o->node);
        json_decref(o->body);
        json_decref(o->status);
        sd_event_source_disable_unref(o->waiting);
        free(o);
}

void operation_finish(struct operation *o, int result, const char *sentence)
{
        store_answer_later(o->all->store, o->answer, o->userdata, result, "%s", sentence);
        operation_free(o);
}

void operation_cancel_all(struct operation_list *all)
{
        struct operation *next;

        for (struct operation *o = all->first; o != NULL; o = next) {
                next = o->next;
                if (o->waiting != NULL) /* those with a call under way end with it */
                        operation_finish(o, -ECANCELED, "the store is closing");
        }
}

static char *copy(const char *value)
{
        return value != NULL ? strdup(value) : NULL;
}

/* @uid: NULL or "" = any. On failure the answer is given. */
struct operation *operation_new(struct operation_list *all, enum store_kind kind, const char *namespace_,
                                const char *name, const char *uid, store_answer answer, void *userdata)
{
        struct operation *o = calloc(1, sizeof(*o));
        bool namespaced = store_kind_info(kind)->namespaced;

        if (o == NULL) {
                store_answer_later(all->store, answer, userdata, -ENOMEM, "out of memory");
                return NULL;
        }
        o->all = all;
        o->next = o->all->first;
        if (o->next != NULL)
                o->next->previous = o;
        o->all->first = o;
        o->kind = kind;
        o->answer = answer;
        o->userdata = userdata;
        o->namespace_ = namespaced
                                ? copy(namespace_ != NULL && namespace_[0] != '\0' ? namespace_ : "default")
                                : NULL;
        o->name = copy(name);
        o->uid = copy(uid != NULL && uid[0] != '\0' ? uid : NULL);
        o->end_usec = loop_now_usec(all->store->loop) + OPERATION_USEC;
        if ((name != NULL && !kube_name_is_safe(name)) ||
            (o->namespace_ != NULL && !kube_name_is_safe(o->namespace_))) {
                store_answer_later(all->store, answer, userdata, -EINVAL, "'%.100s' is no name for a %s",
                                   name != NULL ? name : "", store_kind_name(kind));
                operation_free(o);
                return NULL;
        }
        return o;
}

/* "/api/v1/namespaces/NS/pods/NAME" + suffix */
static void append_path(struct text *path, const struct operation *o, const char *suffix)
{
        store_collection(o->kind, o->namespace_, path);
        if (o->name != NULL && !o->unnamed)
                text_printf(path, "/%s", o->name);
        text_append(path, suffix);
}

/* Whoever no longer leads writes no more, not even what was begun, or what it stood still with. */
static bool may_commit(void *userdata)
{
        const struct operation *o = userdata;
        const struct store_options *options = &o->all->store->options;

        return options->may_commit == NULL || options->may_commit(options->userdata);
}

void operation_call(struct operation *o, const char *method, const char *suffix, const char *content_type,
                    const json_t *body, void (*done)(void *userdata, const struct http_call_result *result))
{
        struct text path = { 0 };
        bool fenced = o->all->store->options.may_commit != NULL, writes = strcmp(method, "GET") != 0;
        struct kube_request request = {
                .method = method,
                .content_type = content_type,
                .body = body,
                .timeout_usec = fenced ? o->all->store->options.commit_usec : OPERATION_CALL_USEC,
                .deadline_usec = fenced ? o->all->store->options.commit_usec : OPERATION_USEC,
                .may_send = fenced && writes ? may_commit : NULL,
                .done = done,
                .userdata = o
        };
        int r = -ENOMEM;

        if (writes && !may_commit(o)) {
                operation_finish(o, -EPERM, NOT_LEADING);
                return;
        }
        o->waiting = sd_event_source_disable_unref(o->waiting);
        append_path(&path, o, suffix);
        request.path = path.data;
        if (!path.failed)
                r = kube_call_start(o->all->client, &request, NULL);
        text_free(&path);
        if (r < 0)
                operation_finish(o, r, "out of memory");
}

/* Was the call a failure that says nothing about the request itself? */
bool operation_may_be_repeated(const struct http_call_result *result)
{
        if (result->error == -ECANCELED || result->error == -EPERM)
                return false;
        return result->error != 0 || result->status / 100 == 5;
}

/* Once more, a little later. False: it has been tried often or long enough. */
bool operation_again(struct operation *o, void (*step)(void *userdata))
{
        uint64_t wait_usec = backoff_usec(o->tries + 1, OPERATION_RETRY_FIRST_USEC, UINT64_MAX);

        if (o->tries >= OPERATION_TRIES_MAX || loop_now_usec(o->all->store->loop) + wait_usec > o->end_usec)
                return false;
        o->tries++;
        wait_usec += jitter_below(OPERATION_RETRY_FIRST_USEC);
        o->waiting = sd_event_source_disable_unref(o->waiting);
        return loop_after(o->all->store->loop, wait_usec, step, o, &o->waiting) >= 0;
}

void operation_answer_as(struct operation *o, const struct http_call_result *result)
{
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));

        operation_finish(o, r, result->error == -EPERM ? NOT_LEADING : sentence);
}
