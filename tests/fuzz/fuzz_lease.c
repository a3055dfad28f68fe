/* Any bytes as what happens to two replicas that want one Lease: time, replies that come, come late, are lost
 * or are nonsense, replicas that stand still, die or leave. The clock, the timers and the API server are in
 * memory. Two never lead at once; and when everything is well again one of them leads. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/loop.h"
#include "store/kubernetes/kube.h"
#include "store/lease.h"

#define REPLICAS    2
#define SECOND_USEC UINT64_C(1000000)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- clock, timers and API server, in place of the programs' (the linker takes the first of a name) */

static uint64_t now_usec;

uint64_t clock_monotonic_usec(void)
{
        return now_usec;
}

uint64_t loop_now_usec(sd_event *loop)
{
        (void) loop;
        return now_usec;
}

uint64_t loop_realtime_usec(sd_event *loop)
{
        (void) loop;
        return UINT64_C(1795000000000000) + now_usec;
}

struct sd_event_source {
        struct sd_event_source *next;
        uint64_t due_usec;
        void (*handler)(void *userdata);
        void *userdata; /* the lease */
};

static struct sd_event_source *timers;

int loop_after(sd_event *loop, uint64_t delay_usec, void (*handler)(void *userdata), void *userdata,
               sd_event_source **ret)
{
        struct sd_event_source *timer = calloc(1, sizeof(*timer));

        (void) loop;
        if (timer == NULL)
                abort();
        *timer = (struct sd_event_source){ timers, now_usec + delay_usec, handler, userdata };
        *ret = timers = timer;
        return 0;
}

int loop_timer(sd_event *loop, void (*handler)(void *userdata), void *userdata, sd_event_source **ret)
{
        return loop_after(loop, UINT64_MAX - now_usec, handler, userdata, ret);
}

void loop_rearm(sd_event_source *timer, uint64_t delay_usec)
{
        timer->due_usec = now_usec + delay_usec;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *source)
{
        for (struct sd_event_source **at = &timers; source != NULL && *at != NULL; at = &(*at)->next)
                if (*at == source) {
                        *at = source->next;
                        break;
                }
        free(source);
        return NULL;
}

struct kube_call {
        struct kube_client *client;
        struct kube_request request;
        char path[160];
        json_t *body;
        long status; /* 0: it has not reached the server */
        char *reply;
};

struct kube_client {
        struct kube_call *call; /* one at a time */
};

static struct replica {
        struct lease *lease;
        struct kube_client *client;
        bool stands;
} replicas[REPLICAS];

static json_t *object; /* the Lease, NULL = there is none */
static uint64_t version;
static const char *neighbour; /* who holds the Lease beside */
static struct kube_client *opened;

int kube_client_new(sd_event *loop, const char *kubeconfig, struct kube_client **ret, struct err *err)
{
        (void) loop;
        (void) kubeconfig;
        (void) err;
        *ret = opened = calloc(1, sizeof(**ret));
        return *ret == NULL ? -ENOMEM : 0;
}

const char *kube_client_namespace(const struct kube_client *client)
{
        (void) client;
        return "remuda";
}

static void free_call(struct kube_call *call)
{
        call->client->call = NULL;
        json_decref(call->body);
        free(call->reply);
        free(call);
}

void kube_call_cancel(struct kube_call *call)
{
        if (call != NULL)
                free_call(call);
}

static void end_call(struct kube_client *client, const struct http_call_result *result)
{
        struct kube_call call = *client->call;

        client->call->body = NULL;
        client->call->reply = NULL;
        free_call(client->call);
        call.request.done(call.request.userdata, result);
        json_decref(call.body);
        free(call.reply);
}

void kube_client_free(struct kube_client *client)
{
        if (client != NULL && client->call != NULL)
                end_call(client, &(struct http_call_result){ .error = -ECANCELED });
        free(client);
}

int kube_call_start(struct kube_client *client, const struct kube_request *request, struct kube_call **ret)
{
        struct kube_call *call = calloc(1, sizeof(*call));

        if (call == NULL || client->call != NULL || request->timeout_usec == 0)
                abort(); /* one call at a time, none that waits for ever */
        call->client = client;
        call->request = *request;
        (void) text_copy(call->path, sizeof(call->path), request->path);
        call->body = json_deep_copy(request->body);
        client->call = call;
        if (ret != NULL)
                *ret = call;
        return 0;
}

static const char *version_of(const json_t *lease)
{
        const char *text =
                json_string_value(json_object_get(json_object_get(lease, "metadata"), "resourceVersion"));

        return text == NULL ? "" : text;
}

/* A version that nobody guesses, as nobody guesses what the server holds. */
static void next_version(json_t *lease)
{
        char text[32];

        (void) text_format(text, sizeof(text), "%016llx",
                           (unsigned long long) (++version * UINT64_C(0x9e3779b97f4a7c15)));
        (void) json_object_set_new(json_object_get(lease, "metadata"), "resourceVersion", json_string(text));
}

static void answer(struct kube_call *call, long status, const json_t *body)
{
        call->status = status;
        call->reply = body != NULL ? json_dumps(body, 0) : strdup("{\"reason\":\"AlreadyExists\"}");
        if (call->reply == NULL)
                abort();
}

/* The call reaches the server. */
static void serve(struct kube_call *call)
{
        bool own = strstr(call->path, "/leases/beside") == NULL;

        if (call->status != 0)
                return;
        if (!own) {
                json_t *lease = json_pack("{s:{s:s}, s:{s:s}}", "metadata", "resourceVersion",
                                          neighbour[0] == '\0' ? "1" : neighbour, "spec", "holderIdentity",
                                          neighbour);

                answer(call, 200, lease);
                json_decref(lease);
        } else if (strcmp(call->request.method, "GET") == 0) {
                answer(call, object == NULL ? 404 : 200, object);
        } else if (strcmp(call->request.method, "POST") == 0
                           ? object != NULL
                           : object == NULL || strcmp(version_of(call->body), version_of(object)) != 0) {
                answer(call, 409, NULL);
        } else {
                json_decref(object);
                object = json_deep_copy(call->body);
                if (!json_is_object(json_object_get(object, "metadata")))
                        abort(); /* a write without a name */
                next_version(object);
                answer(call, strcmp(call->request.method, "POST") == 0 ? 201 : 200, object);
        }
}

static void deliver(struct kube_client *client, int error, long status, const char *bytes, size_t size_bytes)
{
        struct http_call_result result = {
                .error = error, .status = (unsigned) status, .body = bytes, .body_bytes = size_bytes
        };

        end_call(client, &result);
}

int sd_event_new(sd_event **ret)
{
        *ret = NULL;
        return 0;
}

sd_event *sd_event_ref(sd_event *loop)
{
        return loop;
}

sd_event *sd_event_unref(sd_event *loop)
{
        (void) loop;
        return NULL;
}

int sd_event_exit(sd_event *loop, int code)
{
        (void) loop;
        (void) code;
        return 0;
}

/* The loop of who gives its claim back: it is served at once. */
int sd_event_loop(sd_event *loop)
{
        (void) loop;
        if (opened->call != NULL) {
                CLEANUP(free_p) char *reply = NULL;

                serve(opened->call);
                reply = TAKE(opened->call->reply);
                deliver(opened, 0, opened->call->status, reply, strlen(reply));
        }
        return 0;
}

/* --- what happens */

static void on_changed(void *userdata, bool leading, const char *holder)
{
        const struct replica *r = userdata;

        if (holder == NULL || (r->lease != NULL && leading != lease_leading(r->lease)))
                abort();
}

static void on_trouble(void *userdata, const char *sentence)
{
        (void) userdata;
        if (strncmp(sentence, "lease 'l': ", 11) != 0)
                abort();
}

/* A new process: another identity. */
static void open_replica(size_t i, bool beside)
{
        static unsigned processes;
        char identity[32], host[2] = { (char) ('0' + i), '\0' };
        struct lease_options options = { .name = "l",
                                         .identity = identity,
                                         .changed = on_changed,
                                         .trouble = on_trouble,
                                         .userdata = &replicas[i],
                                         .beside = beside ? "beside" : NULL,
                                         .host = host };

        (void) text_format(identity, sizeof(identity), "process-%u", ++processes);
        replicas[i].lease = NULL;
        if (lease_open(NULL, &options, &replicas[i].lease, NULL) < 0)
                abort();
        replicas[i].client = opened;
        replicas[i].stands = false;
}

static void run_timers(void)
{
        for (unsigned n = 0; n < 64; n++) {
                struct sd_event_source *due = NULL;

                for (struct sd_event_source *timer = timers; timer != NULL; timer = timer->next)
                        for (size_t i = 0; i < REPLICAS; i++)
                                if (timer->userdata == replicas[i].lease && !replicas[i].stands &&
                                    timer->due_usec <= now_usec &&
                                    (due == NULL || timer->due_usec < due->due_usec))
                                        due = timer;
                if (due == NULL)
                        return;
                due->due_usec = UINT64_MAX;
                due->handler(due->userdata);
        }
        abort(); /* timers that are always due */
}

static void check(void)
{
        if (lease_leading(replicas[0].lease) && lease_leading(replicas[1].lease))
                abort();
}

static void act(uint8_t what, uint8_t more, const uint8_t *bytes, size_t size, bool beside)
{
        static const long statuses[] = { 200, 204, 400, 401, 403, 404, 409, 410, 429, 500, 503 };
        static const char *const neighbours[] = { "", "0_x", "1_x", "2_x" };
        struct replica *r = &replicas[more % REPLICAS];
        struct kube_call *call = r->client->call;
        size_t i = more % REPLICAS;

        switch (what % 10) {
        case 0:
                now_usec += more * (SECOND_USEC / 20);
                break;
        case 1:
                now_usec += SECOND_USEC / 2;
                break;
        case 2: /* the server answers, some day */
                if (call != NULL)
                        serve(call);
                break;
        case 3: /* and its answer comes */
                if (call != NULL && !r->stands) {
                        CLEANUP(free_p) char *reply = NULL;

                        serve(call);
                        reply = TAKE(call->reply);
                        deliver(r->client, 0, call->status, reply, strlen(reply));
                }
                break;
        case 4: /* or does not, whether the server did what was asked or not */
                if (call != NULL && !r->stands)
                        deliver(r->client, -ETIMEDOUT, 0, NULL, 0);
                break;
        case 5: /* nonsense; that a write was well is said by the server alone */
                if (call != NULL && !r->stands) {
                        long status = statuses[more / 2 % (sizeof(statuses) / sizeof(statuses[0]))];

                        if (status < 300 && strcmp(call->request.method, "GET") != 0)
                                status = 500;
                        deliver(r->client, 0, status, (const char *) bytes, size);
                }
                break;
        case 6:
                r->stands = !r->stands;
                break;
        case 7: /* dies; more: leaves in peace */
                if ((more & 2) != 0 && !r->stands && r->client->call == NULL)
                        lease_give_back(r->lease);
                lease_close(r->lease);
                open_replica(i, beside);
                break;
        case 8: /* somebody annotates it */
                if (object != NULL)
                        next_version(object);
                break;
        case 9:
                neighbour = neighbours[more % 4];
                break;
        }
        run_timers();
        check();
}

/* Everything is well again: within a minute one leads. */
static void settle(void)
{
        uint64_t end = now_usec + 60 * SECOND_USEC;

        neighbour = "";
        for (size_t i = 0; i < REPLICAS; i++)
                replicas[i].stands = false;
        while (!lease_leading(replicas[0].lease) && !lease_leading(replicas[1].lease)) {
                uint64_t next = UINT64_MAX;

                for (uint8_t i = 0; i < REPLICAS; i++)
                        act(3, i, NULL, 0, false);
                for (const struct sd_event_source *timer = timers; timer != NULL; timer = timer->next)
                        next = timer->due_usec < next ? timer->due_usec : next;
                if (next != UINT64_MAX && next > now_usec)
                        now_usec = next;
                if (now_usec > end)
                        abort();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        bool beside = size > 0 && (data[0] & 1) != 0;

        now_usec = UINT64_C(1000) * SECOND_USEC;
        version = 0;
        neighbour = "";
        for (size_t i = 0; i < REPLICAS; i++)
                open_replica(i, beside);
        for (size_t i = 1; i + 1 < size; i += 2)
                act(data[i], data[i + 1], data + i + 2, size - i - 2, beside);
        settle();
        for (size_t i = 0; i < REPLICAS; i++)
                lease_close(replicas[i].lease);
        json_decref(object);
        object = NULL;
        return 0;
}
