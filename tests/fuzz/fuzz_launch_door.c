/* Any lines as requests to the agent's launch door: a byte says which route, the next who asks, then come the
 * query, a tab and the body. Who asks, what is started, the clock and the server are in memory. What nobody
 * may is never done, every request gets one answer, which is JSON with a sentence where it is a refusal, and
 * that sentence never is that memory is short: here it is not. */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/caller.h"
#include "agent/launch/launch_api.h"
#include "agent/launch/launches.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "base/yaml/yaml_parse.h"
#include "io/loop.h"

#define DEVICES 4
#define ROUTES  7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- in place of the programs' (the linker takes the first of a name) */

static uint64_t now_usec;
static struct caller asker; /* pid 0: the kernel does not say who it is */
static const struct http_server_options *door;
static unsigned started;

uint64_t loop_now_usec(sd_event *loop)
{
        (void) loop;
        return now_usec;
}

static struct timer {
        void (*handler)(void *userdata);
        void *userdata;
        bool armed, comes_again;
} timers[128];

static int make_timer(void (*handler)(void *userdata), void *userdata, bool comes_again,
                      sd_event_source **ret)
{
        for (size_t i = 0; i < ARRAY_SIZE(timers); i++)
                if (timers[i].handler == NULL) {
                        timers[i] = (struct timer){ handler, userdata, comes_again, comes_again };
                        *ret = (sd_event_source *) (void *) &timers[i];
                        return 0;
                }
        abort(); /* more than may wait */
}

int loop_timer(sd_event *loop, void (*handler)(void *userdata), void *userdata, sd_event_source **ret)
{
        (void) loop;
        return make_timer(handler, userdata, false, ret);
}

int loop_every(sd_event *loop, uint64_t first_usec, uint64_t period_usec, void (*handler)(void *userdata),
               void *userdata, sd_event_source **ret)
{
        (void) loop;
        (void) first_usec;
        (void) period_usec;
        return make_timer(handler, userdata, true, ret);
}

void loop_rearm(sd_event_source *timer, uint64_t delay_usec)
{
        (void) delay_usec;
        ((struct timer *) (void *) timer)->armed = true;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *source)
{
        if (source != NULL)
                *(struct timer *) (void *) source = (struct timer){ .handler = NULL };
        return NULL;
}

sd_event_source *sd_event_source_unref(sd_event_source *source)
{
        return sd_event_source_disable_unref(source);
}

int http_server_new(sd_event *loop, const struct http_server_options *options, struct http_server **ret,
                    struct err *err)
{
        static struct http_server_options kept;

        (void) loop;
        (void) err;
        kept = *options;
        door = &kept;
        *ret = (struct http_server *) (void *) &kept;
        return 0;
}

void http_server_free(struct http_server *server)
{
        (void) server;
}

bool http_server_is_reachable(const struct http_server *server)
{
        (void) server;
        return true;
}

struct asked {
        char query[512], values[4][512]; /* as many as a request asks for */
        unsigned value_count;
        bool answered, waits;
};

const char *http_request_query(const struct http_request *request, const char *name)
{
        struct asked *asked = request->internal;
        size_t length = strlen(name);

        for (const char *at = asked->query; *at != '\0'; at += strcspn(at, "&"), at += *at == '&')
                if (strncmp(at, name, length) == 0 && at[length] == '=') {
                        char *value = asked->values[asked->value_count++ % ARRAY_SIZE(asked->values)];

                        (void) text_format(value, sizeof(asked->values[0]), "%.*s",
                                           (int) strcspn(at + length + 1, "&"), at + length + 1);
                        return value;
                }
        return NULL;
}

const struct peer *http_request_peer(const struct http_request *request)
{
        static const struct peer somebody;

        (void) request;
        return asker.pid == 0 ? NULL : &somebody;
}

int caller_identify(const char *proc, const char *pod_logs, const struct peer *peer,
                    const char *trusted_group, struct caller *ret, struct err *err)
{
        (void) proc;
        (void) pod_logs;
        (void) peer;
        (void) trusted_group;
        (void) err;
        *ret = asker;
        return 0;
}

struct launches {
        unsigned count;
};

int launches_new(sd_event *loop, launches_ended ended, void *userdata, struct launches **ret, struct err *err)
{
        static struct launches all;

        (void) loop;
        (void) ended;
        (void) userdata;
        (void) err;
        *ret = &all;
        return 0;
}

void launches_free(struct launches *launches)
{
        launches->count = 0;
}

int launches_start(struct launches *launches, const struct launches_request *request, unsigned *ret_id,
                   pid_t *ret_pid, struct err *err)
{
        (void) err;
        if (!request->caller->trusted || strcmp(request->path, "/bin/true") != 0)
                abort(); /* who may not, or what nobody installed */
        for (char *const *variable = request->environment; *variable != NULL; variable++)
                if (strncmp(*variable, "LD_", 3) == 0)
                        abort();
        *ret_id = ++launches->count;
        *ret_pid = 1;
        started++;
        return 0;
}

int launches_stop(struct launches *launches, unsigned id, const struct caller *caller)
{
        if (!caller->trusted)
                abort();
        return id == 0 || id > launches->count ? -ENOENT : 0;
}

bool launches_hold(const struct launches *launches, const char *device_id)
{
        return launches->count > 0 && strcmp(device_id, "gpu-3") == 0;
}

json_t *launches_list(const struct launches *launches)
{
        (void) launches;
        return json_array();
}

int launch_programs_check(struct launch_programs *programs, const struct program_table_row *program,
                          struct err *err)
{
        (void) programs;
        (void) program;
        (void) err;
        return 0;
}

/* --- what the daemon lends */

static void on_event(void *userdata, const char *type, const char *reason, const char *device,
                     const char *sentence)
{
        (void) userdata;
        (void) type;
        (void) reason;
        (void) device;
        (void) sentence;
}

static void on_scan(void *userdata, const char *why)
{
        (void) userdata;
        (void) why;
}

static size_t holders(void *userdata, const struct holder **ret, uint64_t *ret_asked_usec)
{
        static struct holder one = {
                .device_id = "gpu-1", .pod_namespace = "default", .pod = "p", .shares = 1
        };

        (void) userdata;
        *ret = &one;
        if (ret_asked_usec != NULL)
                *ret_asked_usec = now_usec;
        return 1;
}

static void on_asked(void *userdata)
{
        (void) userdata;
}

void log_line(struct log *log, int priority, const char *event, const char *fmt, ...)
{
        (void) log;
        (void) priority;
        (void) event;
        (void) fmt;
}

static int clear(void *userdata, const char *device_id)
{
        (void) userdata;
        if (!asker.trusted || asker.pid == 0)
                abort();
        return strcmp(device_id, "gpu-0") == 0 ? 0 : -ENOENT;
}

static void tell(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        (void) userdata;
        (void) request;
        http_reply_text(reply, 200, NULL, "{}");
}

/* --- answers */

static void check(const struct http_reply *reply)
{
        json_t *json = reply->body == NULL ? NULL : json_loadb(reply->body, reply->body_bytes, 0, NULL);
        const char *sentence = json_string_value(json_object_get(json, "message"));

        if (json == NULL || (reply->status >= 300 && (sentence == NULL || sentence[0] == '\0')) ||
            (reply->status == 503 && sentence != NULL && strncmp(sentence, "no memory", 9) == 0))
                abort();
        json_decref(json);
}

struct http_pending *http_suspend(const struct http_request *request)
{
        struct asked *asked = request->internal;

        asked->waits = true;
        return (struct http_pending *) (void *) asked;
}

void http_resume(struct http_pending *pending, struct http_reply *reply)
{
        struct asked *asked = (struct asked *) (void *) pending;

        if (asked->answered)
                abort();
        if (reply->status != 503 || reply->body != NULL)
                check(reply);
        http_reply_drop(reply);
        free(asked);
}

static void set_asker(uint8_t who)
{
        static const struct caller askers[] = {
                { .pid = 0 },
                { .pid = 1, .uid = 0, .trusted = true },
                { .pid = 2, .uid = 1000, .trusted = true },
                { .pid = 3, .uid = 1000 },
                { .pid = 4, .uid = 0, .pod_uid = "u", .pod_namespace = "default", .pod = "p" },
                { .pid = 5, .uid = 0, .pod_uid = "v" },
                { .pid = 6, .uid = 7, .pod_uid = "w", .pod_namespace = "other", .pod = "p" },
        };

        asker = askers[who % ARRAY_SIZE(askers)];
}

static void ask(uint8_t which, uint8_t who, const char *line, size_t length)
{
        const struct http_route *route = &door->routes[which % ROUTES];
        const char *tab = memchr(line, '\t', length);
        struct asked *asked = calloc(1, sizeof(*asked));
        CLEANUP(free_p)
        char *body =
                strndup(tab != NULL ? tab + 1 : "", tab != NULL ? (size_t) (line + length - tab) - 1 : 0);
        struct http_request request = { .method = route->method,
                                        .path = route->path,
                                        .body = body,
                                        .body_bytes = strlen(body),
                                        .internal = asked };
        struct http_reply reply = { .status = 0 };
        unsigned before = started;

        if (asked == NULL)
                abort();
        (void) text_format(asked->query, sizeof(asked->query), "%.*s",
                           (int) (tab != NULL ? tab - line : (ptrdiff_t) length), line);
        set_asker(who);
        route->handler(door->userdata, &request, &reply);
        if (started != before && !asker.trusted)
                abort();
        if (asked->waits)
                return;
        check(&reply);
        http_reply_drop(&reply);
        free(asked);
}

/* Everybody who waits is answered within his patience. */
static void let_time_pass(void)
{
        now_usec += 1000000;
        for (size_t i = 0; i < ARRAY_SIZE(timers); i++) {
                struct timer due = timers[i];

                if (!due.armed)
                        continue;
                timers[i].armed = due.comes_again;
                due.handler(due.userdata);
        }
}

static void fill(struct inventory *inventory, struct launch_programs *programs)
{
        static const char table[] = "programs:\n  cuda: {path: /bin/true, args: [a], environment: "
                                    "[PATH]}\n  cpu: {path: /bin/true}\n";
        struct device_group *group;
        struct err err = { 0 };
        json_t *json;

        inventory_init(inventory);
        group = inventory_add_group(inventory);
        (void) text_copy(group->name, sizeof(group->name), "g");
        (void) text_copy(group->vendor, sizeof(group->vendor), "nvidia");
        (void) text_copy(group->runtime, sizeof(group->runtime), "cuda");
        for (unsigned i = 0; i < DEVICES; i++) {
                struct device *device = inventory_add_device(inventory);

                (void) text_format(device->id, sizeof(device->id), "gpu-%u", i);
                (void) text_copy(device->group, sizeof(device->group), "g");
                (void) text_copy(device->vendor, sizeof(device->vendor), "nvidia");
                device->usable = i != 2;
                device->index = i;
        }
        if (yaml_parse(table, strlen(table), &json, &err) < 0 ||
            program_table_decode(json, &programs->table, &err) < 0) {
                fprintf(stderr, "%s\n", err.msg);

                abort();
        }
        json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct inventory inventory;
        static struct launch_programs programs;
        static struct agent_config config;
        static struct services services = { .config = &config,
                                            .published = &inventory,
                                            .event = on_event,
                                            .scan = on_scan,
                                            .holders = holders,
                                            .ask_holders = on_asked };
        static const struct launch_api_options options = { .socket = "/door",
                                                           .programs = &programs,
                                                           .clear = clear,
                                                           .get_inventory = tell,
                                                           .get_metrics = tell };
        struct launch_api *api = NULL;

        if (inventory.device_count == 0)
                fill(&inventory, &programs);
        now_usec = 1000000;
        if (launch_api_new(&services, &options, &api, NULL) < 0)
                abort();
        for (size_t at = 0; at + 2 < size;) {
                const uint8_t *end = memchr(data + at + 2, '\n', size - at - 2);
                size_t length = end != NULL ? (size_t) (end - data) - at - 2 : size - at - 2;

                ask(data[at], data[at + 1], (const char *) data + at + 2, length);
                at += 2 + length + 1;
        }
        for (int seconds = 0; seconds < 5; seconds++)
                let_time_pass();
        launch_api_free(api);
        return 0;
}
