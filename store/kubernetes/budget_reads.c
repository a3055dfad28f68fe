/* The list of budgets; then, if any has something left, pod after pod. */
#include "store/kubernetes/budget_reads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_read.h"
#include "base/text.h"
#include "store/kubernetes/store_kubernetes.h"

#define READ_USEC   UINT64_C(5000000)
#define BUDGETS_MAX "500" /* that are looked at */

struct look {
        struct store *store;
        struct kube_client *client;
        json_t *budgets;
        budgets_refuse refuse;
        store_answer answer;
        void *userdata;
        size_t count, next;
        char *namespace_; /* owned, as the names */
        char *names[];
};

static void finish(struct look *look, int result, const char *sentence)
{
        store_answer_later(look->store, look->answer, look->userdata, result, "%s", sentence);
        for (size_t i = 0; i < look->count; i++)
                free(look->names[i]);
        json_decref(look->budgets);
        free(look->namespace_);
        free(look);
}

static void get(struct look *look, const char *path,
                void (*done)(void *userdata, const struct http_call_result *result))
{
        struct kube_request request = {
                .method = "GET", .path = path, .timeout_usec = READ_USEC, .done = done, .userdata = look
        };

        if (path == NULL || kube_call_start(look->client, &request, NULL) < 0)
                finish(look, -ENOMEM, "out of memory");
}

/* The object of a good answer; NULL = the look is over. */
static json_t *object_of(struct look *look, const struct http_call_result *result)
{
        char sentence[400];
        int r = kube_result(result, sentence, sizeof(sentence));
        json_t *object = r < 0 ? NULL : json_read(result->body, result->body_bytes, 0, NULL);

        if (object == NULL)
                finish(look, r < 0 ? r : -EBADMSG, r < 0 ? sentence : "what was read is no JSON");
        return object;
}

static void next_pod(struct look *look);

static void on_pod(void *userdata, const struct http_call_result *result)
{
        struct look *look = userdata;
        json_t *pod = object_of(look, result);
        char why[320];

        if (pod == NULL)
                return;
        if (!budgets_take(look->budgets, pod, why, sizeof(why)))
                look->refuse(look->userdata, look->namespace_, look->names[look->next], why);
        json_decref(pod);
        look->next++;
        next_pod(look);
}

static void next_pod(struct look *look)
{
        struct text path = { 0 };

        if (look->next == look->count || json_array_size(look->budgets) == 0) {
                finish(look, 0, "");
                return;
        }
        text_printf(&path, "/api/v1/namespaces/%s/pods/%s", look->namespace_, look->names[look->next]);
        get(look, path.failed ? NULL : path.data, on_pod);
        text_free(&path);
}

static void on_budgets(void *userdata, const struct http_call_result *result)
{
        struct look *look = userdata;
        json_t *list = object_of(look, result);

        if (list == NULL)
                return;
        look->budgets = json_incref(json_object_get(list, "items"));
        json_decref(list);
        budgets_begin(look->budgets);
        next_pod(look);
}

static bool copy_names(struct look *look, const char *namespace_, const char *const *names, size_t count)
{
        bool safe = kube_name_is_safe(namespace_);

        look->namespace_ = strdup(namespace_);
        for (size_t i = 0; i < count && safe; i++) {
                look->names[i] = strdup(names[i]);
                look->count = i + 1;
                safe = look->names[i] != NULL && kube_name_is_safe(names[i]);
        }
        return safe && look->namespace_ != NULL;
}

void budget_reads_judge(struct store *store, const char *namespace_, const char *const *names, size_t count,
                        budgets_refuse refuse, store_answer answer, void *userdata)
{
        struct look *look = calloc(1, sizeof(*look) + count * sizeof(look->names[0]));
        struct text path = { 0 };

        if (look == NULL) {
                store_answer_later(store, answer, userdata, -ENOMEM, "out of memory");
                return;
        }
        look->store = store;
        look->client = ((struct store_kubernetes *) store)->client;
        look->refuse = refuse;
        look->answer = answer;
        look->userdata = userdata;
        if (!copy_names(look, namespace_, names, count)) {
                finish(look, -EINVAL, "a pod that has no name that it may have");
                return;
        }
        text_printf(&path, "/apis/policy/v1/namespaces/%s/poddisruptionbudgets?limit=" BUDGETS_MAX,
                    namespace_);
        get(look, path.failed ? NULL : path.data, on_budgets);
        text_free(&path);
}
