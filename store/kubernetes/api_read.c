/* A GET, which may be repeated. */
#include "store/kubernetes/api_read.h"

#include <errno.h>

#include "base/json/json_read.h"
#include "store/kubernetes/store_kubernetes.h"

static void try_read(void *userdata);

static void on_read(void *userdata, const struct http_call_result *result)
{
        struct operation *o = userdata;
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));
        json_t *object;

        if (r < 0 && operation_may_be_repeated(result) && operation_again(o, try_read))
                return;
        if (r < 0) {
                operation_finish(o, r, sentence);
                return;
        }
        object = json_read(result->body, result->body_bytes, 0, NULL);
        if (json_is_object(object)) {
                o->take(o->userdata, object);
                operation_finish(o, 0, "");
        } else {
                operation_finish(o, -EBADMSG, "the API server's reply is no JSON object");
        }
        json_decref(object);
}

static void try_read(void *userdata)
{
        operation_call(userdata, "GET", "", NULL, NULL, on_read);
}

void api_read(struct store *store, enum store_kind kind, const char *namespace_, const char *name,
              store_read_taker take, store_answer answer, void *userdata)
{
        struct operation_list *all = &((struct store_kubernetes *) store)->operations;
        struct operation *o = operation_new(all, kind, namespace_, name, NULL, answer, userdata);

        if (o == NULL)
                return;
        o->take = take;
        try_read(o);
}
