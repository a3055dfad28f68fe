/* What happened to one job of a cluster: the API server's events about it, in time. They go after an hour;
 * what the job's conditions say then stands in their place. */

#include "base/json/json_read.h"
#include "base/text.h"
#include "io/loop.h"
#include "job/show/jobs.h"
#include "store/kubernetes/kube.h"

#define CALL_USEC  (5 * UINT64_C(1000000))
#define EVENTS_MAX 500

struct asking {
        sd_event *loop;
        json_t *list; /* NULL = no answer */
};

static void on_events(void *userdata, const struct http_call_result *result)
{
        struct asking *asking = userdata;
        char sentence[200];

        if (kube_result(result, sentence, sizeof(sentence)) == 0)
                asking->list = json_read(result->body, result->body_bytes, 0, NULL);
        (void) sd_event_exit(asking->loop, 0);
}

void jobs_add_events(const struct jobs_options *options, struct job_view *view)
{
        struct asking asking = { 0 };
        struct kube_client *client = NULL;
        char path[700];
        struct kube_request request = { .method = "GET",
                                        .path = path,
                                        .timeout_usec = CALL_USEC,
                                        .done = on_events,
                                        .userdata = &asking };

        if (!kube_name_is_safe(job_view_word(view->namespace_)) ||
            !kube_name_is_safe(job_view_word(view->job)) || !kube_name_is_safe(job_view_word(view->uid)) ||
            !text_format(path, sizeof(path),
                         "/api/v1/namespaces/%s/events?fieldSelector=involvedObject.kind=TrainingJob,"
                         "involvedObject.name=%s,involvedObject.uid=%s&limit=%d",
                         view->namespace_, view->job, view->uid, EVENTS_MAX) ||
            loop_new(&asking.loop, NULL) < 0)
                return;
        if (kube_client_new(asking.loop, options->kubeconfig, &client, NULL) == 0 &&
            kube_call_start(client, &request, NULL) == 0)
                (void) sd_event_loop(asking.loop);
        job_view_read_events(asking.list, view);
        json_decref(asking.list);
        kube_client_free(client);
        sd_event_unref(asking.loop);
}
