/* What happened to one job of a cluster: the API server's events about it, in time. They go after an hour;
 * what the job's conditions say then stands in their place. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/loop.h"
#include "job/show/jobs.h"
#include "store/kubernetes/kube_client.h"

#define CALL_USEC  (5 * UINT64_C(1000000))
#define EVENTS_MAX 500

struct asking {
        sd_event *loop;
        json_t *list; /* NULL = no answer */
};

static void on_events(void *userdata, const struct http_result *result)
{
        struct asking *asking = userdata;
        char sentence[200];

        if (kube_result(result, sentence, sizeof(sentence)) == 0)
                asking->list = json_loadb(result->body, result->body_bytes, 0, NULL);
        (void) sd_event_exit(asking->loop, 0);
}

/* Events have one of three times, by who made them. */
static const char *time_of(const json_t *event)
{
        static const char *const names[] = { "eventTime", "lastTimestamp", "firstTimestamp" };
        const char *time = "";

        for (size_t i = 0; i < ARRAY_SIZE(names) && time[0] == '\0'; i++)
                time = view_text(event, names[i]);
        return time[0] != '\0' ? time : view_text(json_object_get(event, "metadata"), "creationTimestamp");
}

static int compare_events(const void *a, const void *b)
{
        return strcmp(view_text(*(json_t *const *) a, "time"), view_text(*(json_t *const *) b, "time"));
}

static json_t *in_time(const json_t *items)
{
        json_t *sorted[EVENTS_MAX], *events = json_array();
        const json_t *item;
        size_t i, count = 0;

        json_array_foreach((json_t *) items, i, item)
        {
                if (count < EVENTS_MAX)
                        sorted[count++] =
                                json_pack("{s:s, s:s, s:s}", "time", time_of(item), "reason",
                                          view_text(item, "reason"), "message", view_text(item, "message"));
        }
        qsort(sorted, count, sizeof(json_t *), compare_events);
        for (i = 0; i < count; i++)
                (void) json_array_append_new(events, sorted[i]);
        return events;
}

void jobs_add_events(const struct jobs_options *options, json_t *view)
{
        struct asking asking = { 0 };
        struct kube_client *client = NULL;
        char path[700];
        struct kube_request request = { .method = "GET",
                                        .path = path,
                                        .timeout_usec = CALL_USEC,
                                        .done = on_events,
                                        .userdata = &asking };

        if (!kube_name_is_safe(view_text(view, "namespace")) || !kube_name_is_safe(view_text(view, "job")) ||
            !kube_name_is_safe(view_text(view, "uid")) ||
            !text_format(path, sizeof(path),
                         "/api/v1/namespaces/%s/events?fieldSelector=involvedObject.kind=TrainingJob,"
                         "involvedObject.name=%s,involvedObject.uid=%s&limit=%d",
                         view_text(view, "namespace"), view_text(view, "job"), view_text(view, "uid"),
                         EVENTS_MAX) ||
            loop_new(&asking.loop, NULL) < 0)
                return;
        if (kube_client_new(asking.loop, options->kubeconfig, &client, NULL) == 0 &&
            kube_call_start(client, &request, NULL) == 0)
                (void) sd_event_loop(asking.loop);
        if (json_array_size(json_object_get(asking.list, "items")) > 0)
                (void) json_object_set_new(view, "events", in_time(json_object_get(asking.list, "items")));
        json_decref(asking.list);
        kube_client_free(client);
        sd_event_unref(asking.loop);
}
