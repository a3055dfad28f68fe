/* Timers are a list, looked through from the start; a replica's routes are called directly. */
#include "tests/model/stand_ins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "io/clock.h"
#include "io/http/http.h"
#include "io/http/http_server.h"
#include "io/loop.h"
#include "io/snapshot.h"
#include "job/controller/controller.h"
#include "store/lease.h"

uint64_t stand_ins_monotonic_usec, stand_ins_realtime_usec;
int stand_ins_opening, stand_ins_leader = -1;

/* --- clocks and timers */

uint64_t clock_usec(clockid_t clock)
{
        return clock == CLOCK_REALTIME ? stand_ins_realtime_usec : stand_ins_monotonic_usec;
}

uint64_t clock_monotonic_usec(void)
{
        return stand_ins_monotonic_usec;
}

uint64_t clock_monotonic_nsec(void)
{
        return stand_ins_monotonic_usec * 1000;
}

uint64_t clock_realtime_usec(void)
{
        return stand_ins_realtime_usec;
}

uint64_t clock_steady_usec(void)
{
        return UINT64_C(1795000000000000) + stand_ins_monotonic_usec;
}

uint64_t loop_now_usec(sd_event *loop)
{
        (void) loop;
        return stand_ins_monotonic_usec;
}

uint64_t loop_realtime_usec(sd_event *loop)
{
        (void) loop;
        return stand_ins_realtime_usec;
}

struct sd_event_source {
        sd_event_source *next;
        uint64_t due_usec, period_usec;
        bool enabled, gone;
        void (*handler)(void *userdata);
        sd_event_time_handler_t at_time;
        sd_event_handler_t deferred;
        void *userdata;
};

static sd_event_source *sources;

static sd_event_source *add_source(uint64_t due_usec, void *userdata)
{
        sd_event_source *source = calloc(1, sizeof(*source));

        if (source == NULL)
                abort();
        source->due_usec = due_usec;
        source->enabled = true;
        source->userdata = userdata;
        source->next = sources;
        sources = source;
        return source;
}

int loop_every(sd_event *loop, uint64_t first_usec, uint64_t period_usec, void (*handler)(void *userdata),
               void *userdata, sd_event_source **ret)
{
        (void) loop;
        *ret = add_source(stand_ins_monotonic_usec + first_usec, userdata);
        (*ret)->period_usec = period_usec;
        (*ret)->handler = handler;
        return 0;
}

int loop_after(sd_event *loop, uint64_t delay_usec, void (*handler)(void *userdata), void *userdata,
               sd_event_source **ret)
{
        return loop_every(loop, delay_usec, 0, handler, userdata, ret);
}

int loop_timer(sd_event *loop, void (*handler)(void *userdata), void *userdata, sd_event_source **ret)
{
        (void) loop_after(loop, 0, handler, userdata, ret);
        (*ret)->enabled = false;
        return 0;
}

int sd_event_add_time(sd_event *loop, sd_event_source **ret, clockid_t clock, uint64_t usec,
                      uint64_t accuracy, sd_event_time_handler_t handler, void *userdata)
{
        (void) loop;
        (void) clock;
        (void) accuracy;
        *ret = add_source(usec, userdata);
        (*ret)->at_time = handler;
        return 0;
}

int sd_event_add_defer(sd_event *loop, sd_event_source **ret, sd_event_handler_t handler, void *userdata)
{
        (void) loop;
        *ret = add_source(0, userdata);
        (*ret)->deferred = handler;
        return 0;
}

int sd_event_source_set_time(sd_event_source *source, uint64_t usec)
{
        source->due_usec = usec;
        return 0;
}

int sd_event_source_set_time_relative(sd_event_source *source, uint64_t usec)
{
        return sd_event_source_set_time(source, stand_ins_monotonic_usec + usec);
}

int sd_event_source_set_enabled(sd_event_source *source, int enabled)
{
        source->enabled = enabled != SD_EVENT_OFF;
        return 0;
}

int sd_event_source_set_priority(sd_event_source *source, int64_t priority)
{
        (void) source;
        (void) priority;
        return 0;
}

int sd_event_source_set_prepare(sd_event_source *source, sd_event_handler_t handler)
{
        (void) source;
        (void) handler; /* nothing waits here */
        return 0;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *source)
{
        if (source != NULL)
                source->gone = true;
        return NULL;
}

sd_event_source *sd_event_source_unref(sd_event_source *source)
{
        return sd_event_source_disable_unref(source);
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

static void sweep(void)
{
        for (sd_event_source **place = &sources; *place != NULL;) {
                sd_event_source *source = *place;

                if (!source->gone) {
                        place = &source->next;
                        continue;
                }
                *place = source->next;
                free(source);
        }
}

void stand_ins_run(void)
{
        sd_event_source *next;

        for (int rounds = 0; rounds < 1000; rounds++) {
                next = NULL;
                for (sd_event_source *s = sources; s != NULL; s = s->next)
                        if (s->enabled && !s->gone && s->due_usec <= stand_ins_monotonic_usec &&
                            (next == NULL || s->due_usec <= next->due_usec))
                                next = s;
                if (next == NULL)
                        break;
                next->enabled = next->period_usec > 0;
                next->due_usec = stand_ins_monotonic_usec + next->period_usec;
                if (next->handler != NULL)
                        next->handler(next->userdata);
                else if (next->deferred != NULL)
                        (void) next->deferred(next, next->userdata);
                else
                        (void) next->at_time(next, stand_ins_monotonic_usec, next->userdata);
        }
        sweep();
}

/* --- the Lease */

struct lease {
        int replica;
        struct lease_options options;
};

static struct lease *leases[STAND_INS_REPLICAS];

int lease_open(sd_event *loop, const struct lease_options *options, struct lease **ret, struct err *err)
{
        (void) loop;
        (void) err;
        *ret = calloc(1, sizeof(**ret));
        if (*ret == NULL)
                abort();
        (*ret)->replica = stand_ins_opening;
        (*ret)->options = *options;
        leases[stand_ins_opening] = *ret;
        return 0;
}

void lease_close(struct lease *lease)
{
        if (lease != NULL && leases[lease->replica] == lease)
                leases[lease->replica] = NULL;
        free(lease);
}

bool lease_leading(const struct lease *lease)
{
        return stand_ins_leader == lease->replica;
}

const char *lease_holder(const struct lease *lease)
{
        (void) lease;
        return stand_ins_leader < 0 ? "" : "another";
}

void lease_give_back(struct lease *lease)
{
        (void) lease;
}

void stand_ins_lead(int replica)
{
        int before = stand_ins_leader;

        stand_ins_leader = replica;
        for (int r = 0; r < STAND_INS_REPLICAS; r++)
                if (leases[r] != NULL && (r == before || r == replica))
                        leases[r]->options.changed(leases[r]->options.userdata, r == replica, "another");
}

/* --- the doors */

struct http_server {
        int replica;
        struct http_server_options options;
};

static struct http_server *servers[STAND_INS_REPLICAS];

int http_server_new(sd_event *loop, const struct http_server_options *options, struct http_server **ret,
                    struct err *err)
{
        (void) loop;
        (void) err;
        *ret = calloc(1, sizeof(**ret));
        if (*ret == NULL)
                abort();
        (*ret)->replica = stand_ins_opening;
        (*ret)->options = *options;
        servers[stand_ins_opening] = *ret;
        return 0;
}

void http_server_free(struct http_server *server)
{
        if (server != NULL && servers[server->replica] == server)
                servers[server->replica] = NULL;
        free(server);
}

const char *http_server_address(const struct http_server *server)
{
        (void) server;
        return "127.0.0.1:1";
}

const char *http_request_query(const struct http_request *request, const char *name)
{
        (void) request;
        (void) name;
        return NULL;
}

struct http_pending *http_suspend(const struct http_request *request)
{
        return request->internal;
}

void http_resume(struct http_pending *pending, struct http_reply *reply)
{
        struct stand_ins_call *call = (struct stand_ins_call *) (void *) pending;

        if (call->done != NULL) {
                char *body = reply->body == NULL ? NULL : strndup(reply->body, reply->body_bytes);

                call->done(call->userdata, reply->status, body == NULL ? "" : body);
                free(body);
        }
        free(reply->body);
        free(call);
}

/* --- a snapshot is worked out at once, and told from the loop */

struct stand_in_snapshot {
        snapshot_done *done;
        void *userdata;
        struct text text;
        sd_event_source *timer;
};

int snapshot_pool_new(sd_event *loop, unsigned seconds, struct snapshot_pool **ret)
{
        (void) loop;
        (void) seconds;
        *ret = NULL;
        return 0;
}

void snapshot_pool_free(struct snapshot_pool *pool)
{
        (void) pool;
}

static void tell_snapshot(void *userdata)
{
        struct stand_in_snapshot *s = userdata;
        size_t bytes = 0;
        char *text = text_take(&s->text, &bytes);

        s->done(s->userdata, text == NULL ? -EIO : 0, text, bytes);
        sd_event_source_disable_unref(s->timer);
        free(s);
}

int snapshot_run(struct snapshot_pool *pool, snapshot_work *work, snapshot_done *done, void *userdata)
{
        struct stand_in_snapshot *s = calloc(1, sizeof(*s));

        (void) pool;
        if (s == NULL)
                abort();
        s->done = done;
        s->userdata = userdata;
        work(userdata, &s->text);
        return loop_after(NULL, 0, tell_snapshot, s, &s->timer);
}

bool stand_ins_call(int replica, const char *path, const char *body, struct stand_ins_call *call)
{
        struct http_request request = {
                .method = "POST", .path = path, .body = body, .body_bytes = strlen(body), .internal = call
        };
        struct http_reply reply = { .status = 0 };
        const struct http_route *route = servers[replica]->options.routes;

        while (route->method != NULL && strcmp(route->path, path) != 0)
                route++;
        if (route->method == NULL)
                abort();
        reply.status = UINT32_MAX; /* a suspended request leaves the reply untouched */
        route->handler(servers[replica]->options.userdata, &request, &reply);
        if (reply.status == UINT32_MAX && reply.body == NULL)
                return true;
        call->status = reply.status == UINT32_MAX || reply.status == 0 ? 200 : reply.status;
        call->reply = reply.body;
        return false;
}

/* --- no job controller: the extender runs with --jobs off */

void controller_free(struct controller *controller)
{
        (void) controller;
}

void controller_lead(struct controller *controller)
{
        (void) controller;
}

void controller_think(struct controller *controller)
{
        (void) controller;
}

void controller_metrics(const struct controller *controller, struct text *page)
{
        (void) controller;
        (void) page;
}

void controller_observe(struct controller *controller, enum store_kind kind, const char *key,
                        const json_t *object)
{
        (void) controller;
        (void) kind;
        (void) key;
        (void) object;
}

void controller_synced(struct controller *controller, enum store_kind kind)
{
        (void) controller;
        (void) kind;
}

int controller_new(sd_event *loop, const struct controller_options *options, struct controller **ret,
                   struct err *err)
{
        (void) loop;
        (void) options;
        (void) ret;
        (void) err;
        return 0;
}

struct controller_options controller_options_of(const struct server_options *options,
                                                const struct settings *settings)
{
        (void) options;
        (void) settings;
        return (struct controller_options){ .cluster = NULL };
}
