/* A list of the agents' pods, then a window of requests over all nodes. */
#include "cli/agent_pages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "cli/command/metrics_port.h"
#include "cli/command/table.h"
#include "io/clock.h"
#include "store/kubernetes/kube.h"

#define AGENT_PORT     9510U /* docs/reference/ports.md */
#define PODS           "/api/v1/pods?labelSelector=app.kubernetes.io%2Fname%3Dremuda-agent"
#define ONE_USEC       UINT64_C(5000000)
#define ALL_USEC       UINT64_C(20000000)
#define PAGE_MAX_BYTES ((size_t) 16 << 20)

struct asking {
        struct kube_client *client;
        struct agent_page *pages;
        struct request *requests; /* of the pages, one each */
        size_t count, next, running;
        const json_t *pods; /* items; NULL = none */
        json_t *list;
        bool listed;
};

struct request {
        struct asking *asking;
        struct agent_page *page;
        struct kube_call *call; /* under way */
};

static void start_more(struct asking *a);

/* The running agent's pod on the node; the names go into a path. Return: NULL = there is none. */
static const json_t *pod_on(const struct asking *a, const char *node)
{
        for (size_t i = 0; i < json_array_size(a->pods); i++) {
                const json_t *pod = json_array_get(a->pods, i);
                const char *on = json_string_value(json_object_get(json_object_get(pod, "spec"), "nodeName")),
                           *phase = json_string_value(
                                   json_object_get(json_object_get(pod, "status"), "phase"));

                if (on != NULL && phase != NULL && strcmp(on, node) == 0 && strcmp(phase, "Running") == 0)
                        return pod;
        }
        return NULL;
}

static bool path_of(const struct asking *a, const char *node, char *ret, size_t ret_bytes)
{
        const json_t *pod = pod_on(a, node), *metadata = json_object_get(pod, "metadata");
        unsigned port = metrics_port(pod);
        const char *name = json_string_value(json_object_get(metadata, "name")),
                   *namespace_ = json_string_value(json_object_get(metadata, "namespace"));

        if (name != NULL && namespace_ != NULL)
                return kube_name_is_safe(name) && kube_name_is_safe(namespace_) &&
                       text_format(ret, ret_bytes, "/api/v1/namespaces/%s/pods/%s:%u/proxy/metrics",
                                   namespace_, name, port > 0 ? port : AGENT_PORT);
        return kube_name_is_safe(node) &&
               text_format(ret, ret_bytes, "/api/v1/nodes/%s:%u/proxy/metrics", node, AGENT_PORT);
}

static void set_reason(struct agent_page *page, const char *whose, const char *sentence)
{
        (void) text_format(page->reason, sizeof(page->reason), "%s%s", whose, sentence);
        table_clean(page->reason);
}

static void on_page(void *userdata, const struct http_call_result *result)
{
        struct request *request = userdata;
        struct agent_page *page = request->page;
        char sentence[300];

        request->call = NULL;
        request->asking->running--;
        if (kube_result(result, sentence, sizeof(sentence)) == 0) {
                page->figures = node_figures_read(result->body);
                page->reason[0] = '\0';
        } else {
                set_reason(page, "", sentence);
        }
        start_more(request->asking);
}

static void start(struct asking *a, struct request *request)
{
        char path[600];
        struct kube_request call = { .method = "GET",
                                     .path = path,
                                     .reply_max_bytes = PAGE_MAX_BYTES,
                                     .timeout_usec = ONE_USEC,
                                     .deadline_usec = ONE_USEC,
                                     .done = on_page,
                                     .userdata = request };

        if (!path_of(a, request->page->node, path, sizeof(path)))
                set_reason(request->page, "", "its name is no node's");
        else if (kube_call_start(a->client, &call, &request->call) < 0)
                set_reason(request->page, "", "no memory to ask");
        else
                a->running++;
}

static void start_more(struct asking *a)
{
        while (a->running < AGENT_PAGES_PARALLEL && a->next < a->count)
                start(a, &a->requests[a->next++]);
}

/* Where the pods are not known nobody is asked, and each row says why. */
static void on_pods(void *userdata, const struct http_call_result *result)
{
        struct asking *a = userdata;
        char sentence[300];
        struct err err = { 0 };
        int r = kube_result(result, sentence, sizeof(sentence));

        a->listed = true;
        a->list = r < 0 ? NULL : json_read(result->body, result->body_bytes, 0, &err);
        a->pods = json_object_get(a->list, "items");
        if (a->list != NULL)
                start_more(a);
        for (; a->list == NULL && a->next < a->count; a->next++)
                set_reason(&a->pages[a->next], "the agents' pods: ", r < 0 ? sentence : err.msg);
}

static bool is_done(const struct asking *a)
{
        return a->listed && a->running == 0 && a->next == a->count;
}

/* Whoever is not done by then is given up. */
static int turn(struct asking *a, sd_event *loop)
{
        uint64_t now = clock_monotonic_usec(), end = now + ALL_USEC;
        int r = 0;

        for (; !is_done(a) && now < end && r >= 0; now = clock_monotonic_usec()) {
                r = sd_event_run(loop, end - now);
                if (sd_event_get_state(loop) == SD_EVENT_FINISHED)
                        r = -ECANCELED;
        }
        for (size_t i = 0; i < a->count; i++)
                kube_call_cancel(a->requests[i].call);
        return r < 0 ? r : 0;
}

int agent_pages_ask(sd_event *loop, struct kube_client *client, struct agent_page *pages, size_t count,
                    struct err *err)
{
        CLEANUP(free_p) struct request *requests = calloc(count + 1, sizeof(*requests));
        struct asking a = { .client = client, .pages = pages, .requests = requests, .count = count };
        struct kube_call *listing = NULL;
        const struct kube_request list = {
                .method = "GET", .path = PODS, .timeout_usec = ONE_USEC, .done = on_pods, .userdata = &a
        };
        int r;

        for (size_t i = 0; i < count && requests != NULL; i++) {
                requests[i] = (struct request){ .asking = &a, .page = &pages[i] };
                pages[i].figures = NODE_FIGURES_NONE;
                set_reason(&pages[i], "", "no answer in time");
        }
        if (requests == NULL || kube_call_start(client, &list, &listing) < 0)
                return err_set(err, -ENOMEM, "no memory to ask the agents");
        r = turn(&a, loop);
        if (r < 0)
                (void) err_set(err, r, "interrupted");
        if (!a.listed)
                kube_call_cancel(listing);
        json_decref(a.list);
        return r;
}
