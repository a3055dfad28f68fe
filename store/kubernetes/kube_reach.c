/* One look at the version of an API server. */
#include "store/kubernetes/kube_reach.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "io/loop.h"
#include "store/kubernetes/kube.h"

#define REACH_USEC UINT64_C(4000000) /* the whole takes less than five seconds */

struct look {
        sd_event *loop;
        int result;
        bool tls, shook_hands, answered;
        char sentence[300];
};

/* With TLS: the other side has spoken. Without, a socket that nobody reads looks as well. */
static bool on_connected(void *userdata)
{
        struct look *look = userdata;

        look->shook_hands = look->tls;
        return true;
}

static void on_done(void *userdata, const struct http_call_result *result)
{
        struct look *look = userdata;

        look->answered = result->error == 0;
        look->result = kube_result(result, look->sentence, sizeof(look->sentence));
        (void) sd_event_exit(look->loop, 0);
}

static int look_once(struct look *look, struct kube_client *client, struct err *err)
{
        const struct kube_request request = { .method = "GET",
                                              .path = "/version",
                                              .reply_max_bytes = 1 << 20,
                                              .timeout_usec = REACH_USEC,
                                              .may_send = on_connected,
                                              .done = on_done,
                                              .userdata = look };
        int r;

        look->tls = text_starts_with(kube_client_server(client), "https:");
        r = kube_call_start(client, &request, NULL);
        if (r < 0)
                return err_set(err, r, "no memory to ask the API server");
        if (sd_event_loop(look->loop) < 0 || look->result == -EINPROGRESS)
                return err_set(err, -EINTR, "interrupted");
        if (look->shook_hands && look->result == -ETIMEDOUT)
                return 0;
        if (!look->answered)
                return err_set(err, -EHOSTUNREACH, "the API server: %s", look->sentence);
        if (look->result == -EACCES)
                return err_set(err, -EACCES, "the API server does not know who asks: %s", look->sentence);
        return 0;
}

int kube_reach(const char *kubeconfig, struct err *err)
{
        struct look look = { .result = -EINPROGRESS };
        struct kube_client *client = NULL;
        int r = loop_new(&look.loop, err);

        if (r == 0)
                r = kube_client_new(look.loop, kubeconfig, &client, err);
        if (r == 0)
                r = look_once(&look, client, err);
        kube_client_free(client);
        sd_event_unref(look.loop);
        return r;
}

bool kube_reach_is_none(const char *sentence)
{
        return text_starts_with(sentence, "list ") && strstr(sentence, "taken for none") != NULL;
}

bool kube_reach_is_lost(const char *sentence)
{
        return (text_starts_with(sentence, "list ") || text_starts_with(sentence, "watch ")) &&
               !kube_reach_is_none(sentence);
}

int kube_reach_refusal(const char *sentence)
{
        if (!text_starts_with(sentence, "list ") || kube_reach_is_none(sentence))
                return 0;
        return strstr(sentence, ": 401") != NULL || strstr(sentence, "answered 401") != NULL   ? -EACCES
               : strstr(sentence, ": 403") != NULL || strstr(sentence, "answered 403") != NULL ? -EPERM
                                                                                               : 0;
}
