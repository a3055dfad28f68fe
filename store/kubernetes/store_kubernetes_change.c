/* Change: an object is read, changed, and written as it was read, or begun again. */
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "io/loop.h"
#include "store/kubernetes/store_kubernetes_operation.h"

static void try_change(void *userdata);

/* Who lost a race tries again soon, not together with the others that lost it, and as long as there is time.
 */
static bool again_soon(struct operation *o)
{
        uint64_t now = loop_now_usec(o->k->store.loop);
        uint32_t dice = 0;

        if (now + OPERATION_RETRY_FIRST_USEC > o->end_usec)
                return false;
        o->conflicts += o->conflicts < 16;
        (void) !getrandom(&dice, sizeof(dice), GRND_NONBLOCK);
        o->waiting = sd_event_source_disable_unref(o->waiting);
        return loop_after(o->k->store.loop, dice % (OPERATION_RETRY_FIRST_USEC / 4 * o->conflicts) + 1,
                          try_change, o, &o->waiting) >= 0;
}

static void on_changed(void *userdata, const struct http_result *result)
{
        struct operation *o = userdata;
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));

        /* Somebody was quicker, or the object vanished. */
        if ((r == -ESTALE || r == -EEXIST || (r == -ENOENT && !o->creating)) && again_soon(o))
                return;
        /* A reply that was lost: what is there now is changed, and a change that is made twice is the
         * caller's to bear. */
        if (r < 0 && operation_may_be_repeated(result) && operation_again(o, try_change))
                return;
        operation_finish(o, r, sentence);
}

static void write_changed(struct operation *o, const json_t *object)
{
        struct err err = { 0 };

        json_decref(o->body);
        o->body = o->change(o->userdata, object, &err);
        if (o->body == NULL) {
                operation_finish(o, err.code, err.msg);
                return;
        }
        (void) json_object_set_new(o->body, "apiVersion", json_string(store_kind_info(o->kind)->api_version));
        o->creating = o->unnamed = object == NULL;
        operation_call(o, o->creating ? "POST" : "PUT", "?fieldManager=" OPERATION_FIELD_MANAGER,
                       "application/json", o->body, on_changed);
}

static void on_read(void *userdata, const struct http_result *result)
{
        struct operation *o = userdata;
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));
        json_t *object;

        if (r == -ENOENT) {
                write_changed(o, NULL);
                return;
        }
        if (r < 0 && operation_may_be_repeated(result) && operation_again(o, try_change))
                return;
        if (r < 0) {
                operation_finish(o, r, sentence);
                return;
        }
        object = json_loadb(result->body, result->body_bytes, 0, NULL);
        if (!json_is_object(object))
                operation_finish(o, -EBADMSG, "the API server's reply is no JSON object");
        else
                write_changed(o, object);
        json_decref(object);
}

static void try_change(void *userdata)
{
        ((struct operation *) userdata)->unnamed = false;
        operation_call(userdata, "GET", "", NULL, NULL, on_read);
}

void store_kubernetes_change(struct store *store, enum store_kind kind, const char *namespace_,
                             const char *name, store_changer change, store_answer answer, void *userdata)
{
        struct operation *o = operation_new(store, kind, namespace_, name, NULL, answer, userdata);

        if (o == NULL)
                return;
        o->change = change;
        try_change(o);
}
